// A norm that a sum reads, one over half rows and one that is the step's output stay.
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
    %n = "decode.rms_norm"(%h) {weight = "norm", eps = 1.0e-05 : f64, segment = 32 : i64} : (tensor<1x32xf32>) -> tensor<1x32xf32>
    %x = "decode.linear"(%n) {weight = "a"} : (tensor<1x32xf32>) -> tensor<1x32xf32>
    %s = "decode.add"(%x, %n) : (tensor<1x32xf32>, tensor<1x32xf32>) -> tensor<1x32xf32>
    %m = "decode.rms_norm"(%s) {weight = "half", eps = 1.0e-05 : f64, segment = 16 : i64} : (tensor<1x32xf32>) -> tensor<1x32xf32>
    %y = "decode.linear"(%m) {weight = "a"} : (tensor<1x32xf32>) -> tensor<1x32xf32>
    %z = "decode.rms_norm"(%y) {weight = "norm", eps = 1.0e-05 : f64, segment = 32 : i64} : (tensor<1x32xf32>) -> tensor<1x32xf32>
    "decode.output"(%y) {kind = "hidden", index = 0 : i64} : (tensor<1x32xf32>) -> ()
    "decode.output"(%z) {kind = "hidden", index = 1 : i64} : (tensor<1x32xf32>) -> ()
    "step.end"() : () -> ()
  }) {kind = "decode", lanes = 1 : i64, width = 1 : i64, output = "hidden"} : () -> ()
}
