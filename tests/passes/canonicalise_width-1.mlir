// One token is the last token; two of them in a row are one.
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
    %ids = "decode.ids"() : () -> tensor<2xi32>
    %h = "decode.embed"(%ids) {weight = "embed", scale = 1.0 : f64} : (tensor<2xi32>) -> tensor<2x32xf32>
    %k = "decode.last_token"(%h) : (tensor<2x32xf32>) -> tensor<2x32xf32>
    %z = "decode.last_token"(%k) : (tensor<2x32xf32>) -> tensor<2x32xf32>
    %l = "decode.linear"(%z) {weight = "embed"} : (tensor<2x32xf32>) -> tensor<2x48xf32>
    %t = "decode.argmax"(%l) : (tensor<2x48xf32>) -> tensor<2xi32>
    "decode.output_token"(%t) : (tensor<2xi32>) -> ()
    "step.end"() : () -> ()
  }) {kind = "decode", lanes = 2 : i64, width = 1 : i64, output = "token"} : () -> ()
}
