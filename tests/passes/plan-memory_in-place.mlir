// The first sum takes its residual's memory; the second does not, as an output may still read what it would write over.
module {
  "decode.model"() {family = "llama", vocab = 48 : i64, hidden = 32 : i64, layers = 1 : i64, capacity = 32 : i64} : () -> ()
  "decode.weight"() {name = "embed", scheme = "q4_0", rows = 48 : i64, columns = 32 : i64, embedding = 1 : i64} : () -> ()
  "decode.weight"() {name = "a", scheme = "q4_0", rows = 32 : i64, columns = 32 : i64} : () -> ()
  "decode.weight"() {name = "b", scheme = "q8_0", rows = 32 : i64, columns = 32 : i64} : () -> ()
  "decode.weight"() {name = "c", scheme = "f16", rows = 32 : i64, columns = 32 : i64} : () -> ()
  "decode.weight"() {name = "bias", scheme = "f32", rows = 1 : i64, columns = 32 : i64} : () -> ()
  "decode.weight"() {name = "norm", scheme = "f32", rows = 1 : i64, columns = 32 : i64} : () -> ()
  "decode.weight"() {name = "half", scheme = "f32", rows = 1 : i64, columns = 16 : i64} : () -> ()
  "decode.step"() ({
    %ids = "decode.ids"() : () -> tensor<1xi32>
    %h = "decode.embed"(%ids) {weight = "embed", scale = 1.0 : f64, tiles = 1 : i64, tile_rows = 1 : i64} : (tensor<1xi32>) -> tensor<1x32xf32>
    %x = "decode.linear"(%h) {weight = "c", barrier = 1 : i64, activation = "f32", tiles = 2 : i64, tile_rows = 16 : i64} : (tensor<1x32xf32>) -> tensor<1x32xf32>
    %s = "decode.linear_add"(%x, %h) {weight = "c", barrier = 1 : i64, activation = "f32", tiles = 2 : i64, tile_rows = 16 : i64} : (tensor<1x32xf32>, tensor<1x32xf32>) -> tensor<1x32xf32>
    %y = "decode.linear"(%s) {weight = "c", barrier = 1 : i64, activation = "f32", tiles = 2 : i64, tile_rows = 16 : i64} : (tensor<1x32xf32>) -> tensor<1x32xf32>
    %z = "decode.linear_add"(%y, %s) {weight = "c", barrier = 1 : i64, activation = "f32", tiles = 2 : i64, tile_rows = 16 : i64} : (tensor<1x32xf32>, tensor<1x32xf32>) -> tensor<1x32xf32>
    "decode.output"(%s) {kind = "hidden", index = 0 : i64, tiles = 1 : i64, tile_rows = 1 : i64} : (tensor<1x32xf32>) -> ()
    "decode.output"(%z) {kind = "hidden", index = 1 : i64, barrier = 1 : i64, tiles = 1 : i64, tile_rows = 1 : i64} : (tensor<1x32xf32>) -> ()
    "step.end"() : () -> ()
  }) {kind = "decode", lanes = 1 : i64, width = 1 : i64, output = "hidden"} : () -> ()
}
