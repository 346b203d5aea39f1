// level: fused
// Every op that the fused level adds.
module {
  "decode.model"() {family = "llama", vocab = 32 : i64, hidden = 16 : i64, layers = 1 : i64, capacity = 20 : i64} : () -> ()
  "decode.group"() {index = 0 : i64, kind = "full", kv_heads = 1 : i64, key_head = 8 : i64, value_head = 6 : i64, key_scheme = "f16", value_scheme = "f16", capacity = 20 : i64, window = 0 : i64, page_tokens = 16 : i64} : () -> ()
  "decode.rope_table"() {index = 0 : i64, rule = "fixed", rotary = 8 : i64, base = 1.0e4 : f64, weight = "rope.0"} : () -> ()
  "decode.weight"() {name = "rope.0", scheme = "f32", rows = 20 : i64, columns = 8 : i64} : () -> ()
  "decode.weight"() {name = "embed", scheme = "f32", rows = 32 : i64, columns = 16 : i64, embedding = 1 : i64} : () -> ()
  "decode.weight"() {name = "norm", scheme = "f32", rows = 1 : i64, columns = 16 : i64} : () -> ()
  "decode.weight"() {name = "head_norm", scheme = "f32", rows = 1 : i64, columns = 8 : i64} : () -> ()
  "decode.weight"() {name = "q", scheme = "f32", rows = 16 : i64, columns = 16 : i64} : () -> ()
  "decode.weight"() {name = "k", scheme = "f32", rows = 8 : i64, columns = 16 : i64} : () -> ()
  "decode.weight"() {name = "v", scheme = "f32", rows = 6 : i64, columns = 16 : i64} : () -> ()
  "decode.weight"() {name = "q_bias", scheme = "f32", rows = 1 : i64, columns = 16 : i64} : () -> ()
  "decode.weight"() {name = "k_bias", scheme = "f32", rows = 1 : i64, columns = 8 : i64} : () -> ()
  "decode.weight"() {name = "v_bias", scheme = "f32", rows = 1 : i64, columns = 6 : i64} : () -> ()
  "decode.weight"() {name = "o", scheme = "f32", rows = 16 : i64, columns = 12 : i64} : () -> ()
  "decode.weight"() {name = "gate", scheme = "f32", rows = 24 : i64, columns = 16 : i64} : () -> ()
  "decode.weight"() {name = "up", scheme = "f32", rows = 24 : i64, columns = 16 : i64} : () -> ()
  "decode.weight"() {name = "up_bias", scheme = "f32", rows = 1 : i64, columns = 24 : i64} : () -> ()
  "decode.weight"() {name = "down", scheme = "f32", rows = 16 : i64, columns = 24 : i64} : () -> ()

  "decode.step"() ({
    %ids = "decode.ids"() : () -> tensor<2xi32>
    %x = "decode.embed"(%ids) {weight = "embed", scale = 1.0 : f64} : (tensor<2xi32>) -> tensor<2x16xf32>
    %c = "decode.cache"() {layer = 0 : i64, group = 0 : i64} : () -> !decode.cache
    %q, %c1 = "decode.qkv_cache"(%x, %c) {layer = 0 : i64, group = 0 : i64, heads = 2 : i64, q = "q", k = "k", v = "v", q_bias = "q_bias", k_bias = "k_bias", v_bias = "v_bias", norm = "norm", eps = 1.0e-6 : f64, q_norm = "head_norm", k_norm = "head_norm", head_eps = 1.0e-6 : f64, rotary = 8 : i64, offset = 0 : i64, pairing = "halves", table = 0 : i64} : (tensor<2x16xf32>, !decode.cache) -> (tensor<2x16xf32>, !decode.cache)
    %p = "decode.attention_partial"(%q, %c1) {layer = 0 : i64, group = 0 : i64, heads = 2 : i64, scale = 0.25 : f64, soft_cap = 50.0 : f64} : (tensor<2x16xf32>, !decode.cache) -> tensor<2x32xf32>
    %a = "decode.attention_combine"(%p) {layer = 0 : i64, group = 0 : i64, heads = 2 : i64} : (tensor<2x32xf32>) -> tensor<2x12xf32>
    %y = "decode.linear_add"(%a, %x) {layer = 0 : i64, weight = "o"} : (tensor<2x12xf32>, tensor<2x16xf32>) -> tensor<2x16xf32>
    %z = "decode.linear_add"(%p, %y) {layer = 0 : i64, weight = "o", bias = "q_bias", combine = 1 : i64, heads = 2 : i64, group = 0 : i64} : (tensor<2x32xf32>, tensor<2x16xf32>) -> tensor<2x16xf32>
    %g = "decode.gate_up"(%z) {layer = 0 : i64, gate = "gate", up = "up", up_bias = "up_bias", function = "silu", norm = "norm", eps = 1.0e-6 : f64} : (tensor<2x16xf32>) -> tensor<2x24xf32>
    %w = "decode.linear_add"(%g, %z) {layer = 0 : i64, weight = "down"} : (tensor<2x24xf32>, tensor<2x16xf32>) -> tensor<2x16xf32>
    %l = "decode.last_token"(%w) : (tensor<2x16xf32>) -> tensor<2x16xf32>
    %t = "decode.linear_argmax"(%l) {weight = "embed", norm = "norm", eps = 1.0e-6 : f64} : (tensor<2x16xf32>) -> tensor<2xi32>
    "decode.output_token"(%t) : (tensor<2xi32>) -> ()
    "step.end"() : () -> ()
  }) {kind = "decode", lanes = 2 : i64, width = 1 : i64, output = "token"} : () -> ()
}
