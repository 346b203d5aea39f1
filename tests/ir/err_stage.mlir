// level: scheduled
// Staged keys and values that go nowhere.
module {
  "decode.model"() {family = "llama", vocab = 32 : i64, hidden = 16 : i64, layers = 2 : i64, capacity = 8 : i64} : () -> ()
  "decode.group"() {index = 0 : i64, kind = "full", kv_heads = 1 : i64, key_head = 8 : i64, value_head = 8 : i64, key_scheme = "f32", value_scheme = "f32", capacity = 8 : i64, window = 0 : i64, page_tokens = 8 : i64} : () -> ()
  "decode.weight"() {name = "embed", scheme = "f32", rows = 32 : i64, columns = 16 : i64, embedding = 1 : i64} : () -> ()
  "decode.weight"() {name = "k", scheme = "f32", rows = 8 : i64, columns = 16 : i64} : () -> ()
  "decode.step"() ({
    %i = "decode.ids"() : () -> tensor<2xi32>
    %x = "decode.embed"(%i) {weight = "embed", scale = 1.0 : f64} : (tensor<2xi32>) -> tensor<2x16xf32>
    %k = "decode.linear"(%x) {weight = "k"} : (tensor<2x16xf32>) -> tensor<2x8xf32>
    %c = "decode.cache"() {layer = 0 : i64, group = 0 : i64} : () -> !decode.cache
    %c1 = "decode.cache_update"(%c, %k, %k) {layer = 0 : i64, group = 0 : i64} : (!decode.cache, tensor<2x8xf32>, tensor<2x8xf32>) -> !decode.cache
    %d = "decode.cache"() {layer = 1 : i64, group = 0 : i64} : () -> !decode.cache
    %d1 = "decode.cache_update"(%d, %k, %k) {layer = 1 : i64, group = 0 : i64, staged = 1 : i64} : (!decode.cache, tensor<2x8xf32>, tensor<2x8xf32>) -> !decode.cache
    "decode.cache_store"(%c1) {layer = 0 : i64, group = 0 : i64} : (!decode.cache) -> ()
    "decode.cache_store"(%c1) {layer = 0 : i64, group = 0 : i64} : (!decode.cache) -> ()
    "step.end"() : () -> ()
  }) {kind = "prefill", lanes = 1 : i64, width = 2 : i64, output = "none"} : () -> ()
}
