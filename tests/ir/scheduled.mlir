// level: scheduled
// Every op and attribute that scheduling adds.
module {
  "decode.model"() {family = "llama", vocab = 32 : i64, hidden = 16 : i64, layers = 1 : i64, capacity = 20 : i64} : () -> ()
  "decode.group"() {index = 0 : i64, kind = "full", kv_heads = 1 : i64, key_head = 8 : i64, value_head = 8 : i64, key_scheme = "f16", value_scheme = "f16", capacity = 20 : i64, window = 0 : i64, page_tokens = 16 : i64} : () -> ()
  "decode.weight"() {name = "embed", scheme = "f32", rows = 32 : i64, columns = 16 : i64, embedding = 1 : i64, layout = 1 : i64} : () -> ()
  "decode.weight"() {name = "norm", scheme = "f32", rows = 1 : i64, columns = 16 : i64, layout = 0 : i64} : () -> ()
  "decode.weight"() {name = "k", scheme = "f32", rows = 8 : i64, columns = 16 : i64, layout = 1 : i64} : () -> ()
  "decode.step"() ({
    %ids = "decode.ids"() : () -> tensor<4xi32>
    %x = "decode.embed"(%ids) {weight = "embed", scale = 1.0 : f64, tiles = 4 : i64, tile_rows = 1 : i64, buffer = [0, 256, 4, 16, 0, 0]} : (tensor<4xi32>) -> tensor<4x16xf32>
    %p = "decode.prepare"(%x) {norm = "norm", eps = 1.0e-6 : f64, activation = "f32", barrier = 1 : i64, tiles = 4 : i64, tile_rows = 1 : i64, buffer = [256, 256, 4, 16, 0, 0]} : (tensor<4x16xf32>) -> tensor<4x16xf32>
    %k = "decode.linear"(%p) {layer = 0 : i64, weight = "k", activation = "f32", barrier = 1 : i64, tiles = 1 : i64, tile_rows = 8 : i64, device = 0 : i64, buffer = [512, 128, 4, 8, 0, 0], prepared = [0, 256, 4, 16, 0, 1], scratch = []} : (tensor<4x16xf32>) -> tensor<4x8xf32>
    %c = "decode.cache"() {layer = 0 : i64, group = 0 : i64} : () -> !decode.cache
    %c1 = "decode.cache_update"(%c, %k, %k) {layer = 0 : i64, group = 0 : i64, staged = 1 : i64, barrier = 1 : i64, tiles = 1 : i64, stage = [1024, 1024, 1, 256, 0, 0]} : (!decode.cache, tensor<4x8xf32>, tensor<4x8xf32>) -> !decode.cache
    "decode.cache_store"(%c1) {layer = 0 : i64, group = 0 : i64, barrier = 1 : i64, tiles = 1 : i64} : (!decode.cache) -> ()
    %logits = "decode.linear"(%x) {weight = "embed", logits = 1 : i64, activation = "f32", result = "f32", tiles = 4 : i64, tile_rows = 8 : i64} : (tensor<4x16xf32>) -> tensor<4x32xf32>
    "decode.output"(%logits) {kind = "all", index = 0 : i64} : (tensor<4x32xf32>) -> ()
    "step.end"() : () -> ()
  }) {kind = "prefill", lanes = 1 : i64, width = 4 : i64, output = "all", workspace = 4096 : i64} : () -> ()
}
