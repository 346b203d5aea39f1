// Experts that do not fit.
module {
  "decode.model"() {family = "mixtral", vocab = 48 : i64, hidden = 32 : i64, layers = 1 : i64, capacity = 64 : i64} : () -> ()
  "decode.weight"() {name = "embed", scheme = "q4_0", rows = 48 : i64, columns = 32 : i64, embedding = 1 : i64} : () -> ()
  "decode.weight"() {name = "0.mlp_norm", scheme = "f32", rows = 1 : i64, columns = 32 : i64} : () -> ()
  "decode.weight"() {name = "0.router", scheme = "f32", rows = 8 : i64, columns = 32 : i64} : () -> ()
  "decode.weight"() {name = "0.correction", scheme = "f32", rows = 1 : i64, columns = 8 : i64} : () -> ()
  "decode.weight"() {name = "0.gate", scheme = "q4_0", rows = 512 : i64, columns = 32 : i64, experts = 8 : i64} : () -> ()
  "decode.weight"() {name = "0.up", scheme = "q4_0", rows = 512 : i64, columns = 32 : i64, experts = 8 : i64} : () -> ()
  "decode.weight"() {name = "0.down", scheme = "q4_0", rows = 256 : i64, columns = 64 : i64, experts = 8 : i64} : () -> ()
  "decode.weight"() {name = "0.gate_bias", scheme = "f32", rows = 1 : i64, columns = 512 : i64} : () -> ()
  "decode.weight"() {name = "0.down_bias", scheme = "f32", rows = 1 : i64, columns = 256 : i64} : () -> ()
  "decode.weight"() {name = "norm", scheme = "f32", rows = 1 : i64, columns = 32 : i64} : () -> ()
  "decode.weight"() {name = "uneven", scheme = "f32", rows = 6 : i64, columns = 4 : i64, experts = 4 : i64} : () -> ()
  "decode.step"() ({
    %ids = "decode.ids"() : () -> tensor<1xi32>
    %x = "decode.embed"(%ids) {weight = "embed", scale = 1.0 : f64} : (tensor<1xi32>) -> tensor<1x32xf32>
    %l = "decode.linear"(%x) {weight = "0.router"} : (tensor<1x32xf32>) -> tensor<1x8xf32>
    %one = "decode.linear"(%x) {weight = "0.gate"} : (tensor<1x32xf32>) -> tensor<1x512xf32>
    %r = "decode.route"(%l) {experts = 8 : i64, used = 2 : i64, rule = "softmax", normalise = 1 : i64, scale = 1.0 : f64} : (tensor<1x8xf32>) -> tensor<1x4xf32>
    %r1 = "decode.route"(%l) {experts = 8 : i64, used = 9 : i64, rule = "best", normalise = 1 : i64, scale = 0x7FF0000000000000 : f64} : (tensor<1x8xf32>) -> tensor<1x18xf32>
    %r2 = "decode.route"(%l) {experts = 8 : i64, used = 4 : i64, rule = "softmax", normalise = 1 : i64, scale = 1.0 : f64, groups = 4 : i64, used_groups = 1 : i64, correction = "norm"} : (tensor<1x8xf32>) -> tensor<1x4xf32>
    %g1 = "decode.experts_gate_up"(%x, %r) {gate = "0.router", up = "0.up", function = "silu", experts = 8 : i64, used = 2 : i64, gate_bias = "norm"} : (tensor<1x32xf32>, tensor<1x4xf32>) -> tensor<1x128xf32>
    %g2 = "decode.experts_gate_up"(%x, %r) {gate = "0.gate", up = "0.up", function = "swiglu_clamped", experts = 8 : i64, used = 2 : i64} : (tensor<1x32xf32>, tensor<1x4xf32>) -> tensor<1x127xf32>
    %g3 = "decode.experts_gate_up"(%x, %r) {gate = "0.gate", up = "0.up", function = "tanh", experts = 8 : i64, used = 0 : i64, scale_input = 1 : i64, up_bias = "0.gate_bias"} : (tensor<1x32xf32>, tensor<1x4xf32>) -> tensor<1x128xf32>
    %d1 = "decode.experts_down"(%g2, %l) {weight = "0.down", experts = 8 : i64, used = 2 : i64, bias = "norm"} : (tensor<1x127xf32>, tensor<1x8xf32>) -> tensor<1x32xf32>
    %d2 = "decode.experts_down"(%g1, %r) {weight = "0.up", experts = 4 : i64, used = 2 : i64} : (tensor<1x128xf32>, tensor<1x4xf32>) -> tensor<2x32xf32>
    %f = "decode.activation"(%x) {function = "swiglu_clamped"} : (tensor<1x32xf32>) -> tensor<1x32xf32>
    "step.end"() : () -> ()
  }) {kind = "decode", lanes = 1 : i64, width = 1 : i64, output = "none"} : () -> ()
}
