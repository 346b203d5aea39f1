// level: fused
// Attention and fused ops that do not fit their group.
module {
  "decode.model"() {family = "llama", vocab = 32 : i64, hidden = 16 : i64, layers = 2 : i64, capacity = 8 : i64} : () -> ()
  "decode.group"() {index = 0 : i64, kind = "full", kv_heads = 1 : i64, key_head = 8 : i64, value_head = 8 : i64, key_scheme = "f32", value_scheme = "f32", capacity = 8 : i64, window = 0 : i64, page_tokens = 8 : i64} : () -> ()
  "decode.weight"() {name = "embed", scheme = "f32", rows = 32 : i64, columns = 16 : i64, embedding = 1 : i64} : () -> ()
  "decode.weight"() {name = "k", scheme = "f32", rows = 8 : i64, columns = 16 : i64} : () -> ()
  "decode.weight"() {name = "norm", scheme = "f32", rows = 1 : i64, columns = 16 : i64} : () -> ()
  "decode.weight"() {name = "vector", scheme = "f32", rows = 2 : i64, columns = 4 : i64} : () -> ()
  "decode.weight"() {name = "rope", scheme = "f32", rows = 8 : i64, columns = 8 : i64} : () -> ()
  "decode.rope_table"() {index = 0 : i64, rule = "fixed", rotary = 8 : i64, base = 1.0e4 : f64, weight = "rope"} : () -> ()
  "decode.step"() ({
    %i = "decode.ids"() : () -> tensor<1xi32>
    %x = "decode.embed"(%i) {weight = "embed", scale = 1.0 : f64} : (tensor<1xi32>) -> tensor<1x16xf32>
    %k = "decode.linear"(%x) {weight = "k"} : (tensor<1x16xf32>) -> tensor<1x8xf32>
    %c = "decode.cache"() {layer = 0 : i64, group = 0 : i64} : () -> !decode.cache
    %c1 = "decode.cache_update"(%c, %x, %k) {layer = 0 : i64, group = 0 : i64} : (!decode.cache, tensor<1x16xf32>, tensor<1x8xf32>) -> !decode.cache
    %a1 = "decode.attention"(%x, %c1) {layer = 0 : i64, group = 0 : i64, heads = 0 : i64, scale = 0x7FF8000000000000 : f64, soft_cap = -1.0 : f64} : (tensor<1x16xf32>, !decode.cache) -> tensor<1x16xf32>
    %a2 = "decode.attention"(%x, %c1) {layer = 0 : i64, group = 0 : i64, heads = 3 : i64, scale = 1.0 : f64, soft_cap = 0.0 : f64} : (tensor<1x16xf32>, !decode.cache) -> tensor<1x16xf32>
    %p = "decode.attention_partial"(%x, %c1) {layer = 0 : i64, group = 0 : i64, heads = 2 : i64, scale = 1.0 : f64, soft_cap = 0.0 : f64} : (tensor<1x16xf32>, !decode.cache) -> tensor<1x16xf32>
    %o = "decode.attention_combine"(%p) {layer = 0 : i64, group = 0 : i64, heads = 2 : i64} : (tensor<1x16xf32>) -> tensor<1x16xf32>
    %y = "decode.linear_add"(%p, %k) {weight = "k", combine = 1 : i64} : (tensor<1x16xf32>, tensor<1x8xf32>) -> tensor<1x16xf32>
    %g = "decode.gate_up"(%x) {gate = "k", up = "embed", function = "silu"} : (tensor<1x16xf32>) -> tensor<1x8xf32>
    %d = "decode.cache"() {layer = 1 : i64, group = 0 : i64} : () -> !decode.cache
    %q, %d1 = "decode.qkv_cache"(%x, %d) {layer = 1 : i64, group = 0 : i64, heads = 2 : i64, q = "embed", k = "k", v = "k", q_norm = "norm", rotary = 6 : i64, offset = 0 : i64, pairing = "halves", table = 0 : i64} : (tensor<1x16xf32>, !decode.cache) -> (tensor<1x16xf32>, !decode.cache)
    %t = "decode.linear_argmax"(%x) {weight = "k"} : (tensor<1x16xf32>) -> tensor<1xi32>
    "step.end"() : () -> ()
  }) {kind = "decode", lanes = 1 : i64, width = 1 : i64, output = "none"} : () -> ()
}
