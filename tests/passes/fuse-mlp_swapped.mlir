// The product's operands the other way round, a bias on up.
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
    %h = "decode.embed"(%ids) {weight = "embed", scale = 1.0 : f64} : (tensor<1xi32>) -> tensor<1x32xf32>
    %g = "decode.linear"(%h) {weight = "a"} : (tensor<1x32xf32>) -> tensor<1x32xf32>
    %u = "decode.linear"(%h) {weight = "b", bias = "bias"} : (tensor<1x32xf32>) -> tensor<1x32xf32>
    %s = "decode.activation"(%g) {function = "gelu_tanh"} : (tensor<1x32xf32>) -> tensor<1x32xf32>
    %z = "decode.mul"(%u, %s) : (tensor<1x32xf32>, tensor<1x32xf32>) -> tensor<1x32xf32>
    %l = "decode.linear"(%z) {weight = "embed"} : (tensor<1x32xf32>) -> tensor<1x48xf32>
    %t = "decode.argmax"(%l) : (tensor<1x48xf32>) -> tensor<1xi32>
    "decode.output_token"(%t) : (tensor<1xi32>) -> ()
    "step.end"() : () -> ()
  }) {kind = "decode", lanes = 1 : i64, width = 1 : i64, output = "token"} : () -> ()
}
