// Caches: used twice, crossed, never written.
module {
  "decode.model"() {family = "llama", vocab = 32 : i64, hidden = 16 : i64, layers = 2 : i64, capacity = 8 : i64} : () -> ()
  "decode.group"() {index = 0 : i64, kind = "full", kv_heads = 1 : i64, key_head = 8 : i64, value_head = 8 : i64, key_scheme = "f32", value_scheme = "f32", capacity = 8 : i64, window = 0 : i64, page_tokens = 8 : i64} : () -> ()
  "decode.weight"() {name = "embed", scheme = "f32", rows = 32 : i64, columns = 16 : i64, embedding = 1 : i64} : () -> ()
  "decode.weight"() {name = "k", scheme = "f32", rows = 8 : i64, columns = 16 : i64} : () -> ()
  "decode.step"() ({
    %i = "decode.ids"() : () -> tensor<1xi32>
    %x = "decode.embed"(%i) {weight = "embed", scale = 1.0 : f64} : (tensor<1xi32>) -> tensor<1x16xf32>
    %k = "decode.linear"(%x) {weight = "k"} : (tensor<1x16xf32>) -> tensor<1x8xf32>
    %c = "decode.cache"() {layer = 0 : i64, group = 0 : i64} : () -> !decode.cache
    %d = "decode.cache"() {layer = 0 : i64, group = 0 : i64} : () -> !decode.cache
    %e = "decode.cache"() {layer = 1 : i64, group = 0 : i64} : () -> !decode.cache
    %c1 = "decode.cache_update"(%c, %k, %k) {layer = 0 : i64, group = 0 : i64} : (!decode.cache, tensor<1x8xf32>, tensor<1x8xf32>) -> !decode.cache
    %ac = "decode.attention"(%x, %c) {layer = 0 : i64, group = 0 : i64, heads = 2 : i64, scale = 1.0 : f64, soft_cap = 0.0 : f64} : (tensor<1x16xf32>, !decode.cache) -> tensor<1x16xf32>
    %d1 = "decode.cache_update"(%d, %k, %k) {layer = 0 : i64, group = 0 : i64} : (!decode.cache, tensor<1x8xf32>, tensor<1x8xf32>) -> !decode.cache
    %ac1 = "decode.attention"(%x, %c1) {layer = 1 : i64, group = 0 : i64, heads = 2 : i64, scale = 1.0 : f64, soft_cap = 0.0 : f64} : (tensor<1x16xf32>, !decode.cache) -> tensor<1x16xf32>
    %z = "decode.cache"() {layer = 2 : i64, group = 7 : i64} : () -> !decode.cache
    "step.end"() : () -> ()
  }) {kind = "decode", lanes = 1 : i64, width = 1 : i64, output = "none"} : () -> ()
  "decode.step"() ({
    %i = "decode.ids"() : () -> tensor<1xi32>
    %x = "decode.embed"(%i) {weight = "embed", scale = 1.0 : f64} : (tensor<1xi32>) -> tensor<1x16xf32>
    %k = "decode.linear"(%x) {weight = "k"} : (tensor<1x16xf32>) -> tensor<1x8xf32>
    %c = "decode.cache"() {layer = 0 : i64, group = 0 : i64} : () -> !decode.cache
    %d = "decode.cache"() {layer = 1 : i64, group = 0 : i64} : () -> !decode.cache
    %c1 = "decode.cache_update"(%c, %k, %k) {layer = 0 : i64, group = 0 : i64} : (!decode.cache, tensor<1x8xf32>, tensor<1x8xf32>) -> !decode.cache
    %d1 = "decode.cache_update"(%d, %k, %k) {layer = 1 : i64, group = 0 : i64} : (!decode.cache, tensor<1x8xf32>, tensor<1x8xf32>) -> !decode.cache
    "step.end"() : () -> ()
  }) {kind = "prefill", lanes = 1 : i64, width = 1 : i64, output = "none"} : () -> ()
}
