// level: fused
// Fused ops in groups without values, sinks without a merge.
module {
  "decode.model"() {family = "other", vocab = 32 : i64, hidden = 16 : i64, layers = 1 : i64, capacity = 8 : i64} : () -> ()
  "decode.group"() {index = 0 : i64, kind = "full", kv_heads = 1 : i64, key_head = 8 : i64, value_head = 8 : i64, key_scheme = "f16", value_scheme = "f16", capacity = 8 : i64, window = 0 : i64, page_tokens = 8 : i64, value_in_key = 1 : i64} : () -> ()
  "decode.weight"() {name = "embed", scheme = "f16", rows = 32 : i64, columns = 16 : i64, embedding = 1 : i64} : () -> ()
  "decode.weight"() {name = "q", scheme = "f32", rows = 16 : i64, columns = 16 : i64} : () -> ()
  "decode.weight"() {name = "k", scheme = "f32", rows = 8 : i64, columns = 16 : i64} : () -> ()
  "decode.weight"() {name = "sinks", scheme = "f32", rows = 1 : i64, columns = 2 : i64} : () -> ()

  "decode.step"() ({
    %ids = "decode.ids"() : () -> tensor<1xi32>
    %x = "decode.embed"(%ids) {weight = "embed", scale = 1.0 : f64} : (tensor<1xi32>) -> tensor<1x16xf32>
    %c0 = "decode.cache"() {layer = 0 : i64, group = 0 : i64} : () -> !decode.cache
    %q, %c1 = "decode.qkv_cache"(%x, %c0) {layer = 0 : i64, group = 0 : i64, heads = 2 : i64, q = "q", k = "k", v = "k", rotary = 0 : i64, offset = 0 : i64, pairing = "halves", table = 0 : i64} : (tensor<1x16xf32>, !decode.cache) -> (tensor<1x16xf32>, !decode.cache)
    %y = "decode.linear_add"(%q, %x) {layer = 0 : i64, weight = "q", sinks = "sinks"} : (tensor<1x16xf32>, tensor<1x16xf32>) -> tensor<1x16xf32>
    %g = "decode.gate_up"(%x) {layer = 0 : i64, gate = "q", up_bias = "sinks", function = "silu"} : (tensor<1x16xf32>) -> tensor<1x16xf32>
    "step.end"() : () -> ()
  }) {kind = "decode", lanes = 1 : i64, width = 1 : i64, output = "none"} : () -> ()
}
