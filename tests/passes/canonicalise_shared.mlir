// last_token stays behind a value that others read whole.
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
    %ids = "decode.ids"() : () -> tensor<8xi32>
    %h = "decode.embed"(%ids) {weight = "embed", scale = 1.0 : f64} : (tensor<8xi32>) -> tensor<8x32xf32>
    %x = "decode.linear"(%h) {weight = "a"} : (tensor<8x32xf32>) -> tensor<8x32xf32>
    "decode.output"(%x) {kind = "hidden", index = 0 : i64} : (tensor<8x32xf32>) -> ()
    %z = "decode.last_token"(%x) : (tensor<8x32xf32>) -> tensor<1x32xf32>
    %y = "decode.linear"(%z) {weight = "b"} : (tensor<1x32xf32>) -> tensor<1x32xf32>
    %w = "decode.linear"(%x) {weight = "b"} : (tensor<8x32xf32>) -> tensor<8x32xf32>
    "decode.output"(%w) {kind = "hidden", index = 1 : i64} : (tensor<8x32xf32>) -> ()
    "step.end"() : () -> ()
  }) {kind = "prefill", lanes = 1 : i64, width = 8 : i64, output = "hidden"} : () -> ()
}
