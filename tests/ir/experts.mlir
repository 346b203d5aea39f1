// Ops of experts, with all that they may have.
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
  "decode.step"() ({
    %ids = "decode.ids"() : () -> tensor<2xi32>
    %x = "decode.embed"(%ids) {weight = "embed", scale = 1.0 : f64} : (tensor<2xi32>) -> tensor<2x32xf32>
    %n = "decode.rms_norm"(%x) {layer = 0 : i64, weight = "0.mlp_norm", eps = 1.0e-05 : f64, segment = 32 : i64} : (tensor<2x32xf32>) -> tensor<2x32xf32>
    %l = "decode.linear"(%n) {layer = 0 : i64, weight = "0.router"} : (tensor<2x32xf32>) -> tensor<2x8xf32>
    %r = "decode.route"(%l) {layer = 0 : i64, experts = 8 : i64, used = 2 : i64, rule = "softmax", normalise = 1 : i64, scale = 1.0 : f64} : (tensor<2x8xf32>) -> tensor<2x4xf32>
    %h = "decode.experts_gate_up"(%n, %r) {layer = 0 : i64, gate = "0.gate", up = "0.up", function = "silu", experts = 8 : i64, used = 2 : i64} : (tensor<2x32xf32>, tensor<2x4xf32>) -> tensor<2x128xf32>
    %d = "decode.experts_down"(%h, %r) {layer = 0 : i64, weight = "0.down", experts = 8 : i64, used = 2 : i64} : (tensor<2x128xf32>, tensor<2x4xf32>) -> tensor<2x32xf32>
    %y = "decode.add"(%d, %x) {layer = 0 : i64} : (tensor<2x32xf32>, tensor<2x32xf32>) -> tensor<2x32xf32>
    %last = "decode.last_token"(%y) : (tensor<2x32xf32>) -> tensor<2x32xf32>
    %fn = "decode.rms_norm"(%last) {weight = "norm", eps = 1.0e-05 : f64, segment = 32 : i64} : (tensor<2x32xf32>) -> tensor<2x32xf32>
    %logits = "decode.linear"(%fn) {weight = "embed"} : (tensor<2x32xf32>) -> tensor<2x48xf32>
    %token = "decode.argmax"(%logits) : (tensor<2x48xf32>) -> tensor<2xi32>
    "decode.output_token"(%token) : (tensor<2xi32>) -> ()
    "step.end"() : () -> ()
  }) {kind = "decode", lanes = 2 : i64, width = 1 : i64, output = "token"} : () -> ()
  "decode.step"() ({
    %ids = "decode.ids"() : () -> tensor<1xi32>
    %x = "decode.embed"(%ids) {weight = "embed", scale = 1.0 : f64} : (tensor<1xi32>) -> tensor<1x32xf32>
    %n = "decode.rms_norm"(%x) {layer = 0 : i64, weight = "0.mlp_norm", eps = 1.0e-05 : f64, segment = 32 : i64} : (tensor<1x32xf32>) -> tensor<1x32xf32>
    %l = "decode.linear"(%n) {layer = 0 : i64, weight = "0.router"} : (tensor<1x32xf32>) -> tensor<1x8xf32>
    %r = "decode.route"(%l) {layer = 0 : i64, experts = 8 : i64, used = 2 : i64, rule = "sigmoid", normalise = 1 : i64, scale = 1.0 : f64} : (tensor<1x8xf32>) -> tensor<1x4xf32>
    %h = "decode.experts_gate_up"(%n, %r) {layer = 0 : i64, gate = "0.gate", up = "0.up", function = "silu", scale_input = 1 : i64, experts = 8 : i64, used = 2 : i64} : (tensor<1x32xf32>, tensor<1x4xf32>) -> tensor<1x128xf32>
    %d = "decode.experts_down"(%h, %r) {layer = 0 : i64, weight = "0.down", experts = 8 : i64, used = 2 : i64} : (tensor<1x128xf32>, tensor<1x4xf32>) -> tensor<1x32xf32>
    %y = "decode.add"(%d, %x) {layer = 0 : i64} : (tensor<1x32xf32>, tensor<1x32xf32>) -> tensor<1x32xf32>
    %last = "decode.last_token"(%y) : (tensor<1x32xf32>) -> tensor<1x32xf32>
    %fn = "decode.rms_norm"(%last) {weight = "norm", eps = 1.0e-05 : f64, segment = 32 : i64} : (tensor<1x32xf32>) -> tensor<1x32xf32>
    %logits = "decode.linear"(%fn) {weight = "embed"} : (tensor<1x32xf32>) -> tensor<1x48xf32>
    %token = "decode.argmax"(%logits) : (tensor<1x48xf32>) -> tensor<1xi32>
    "decode.output_token"(%token) : (tensor<1xi32>) -> ()
    "step.end"() : () -> ()
  }) {kind = "decode", lanes = 1 : i64, width = 1 : i64, output = "token"} : () -> ()
  "decode.step"() ({
    %ids = "decode.ids"() : () -> tensor<3xi32>
    %x = "decode.embed"(%ids) {weight = "embed", scale = 1.0 : f64} : (tensor<3xi32>) -> tensor<3x32xf32>
    %n = "decode.rms_norm"(%x) {layer = 0 : i64, weight = "0.mlp_norm", eps = 1.0e-05 : f64, segment = 32 : i64} : (tensor<3x32xf32>) -> tensor<3x32xf32>
    %l = "decode.linear"(%n) {layer = 0 : i64, weight = "0.router"} : (tensor<3x32xf32>) -> tensor<3x8xf32>
    %r = "decode.route"(%l) {layer = 0 : i64, experts = 8 : i64, used = 2 : i64, rule = "softmax", normalise = 1 : i64, scale = 1.0 : f64, groups = 4 : i64, used_groups = 2 : i64, correction = "0.correction"} : (tensor<3x8xf32>) -> tensor<3x4xf32>
    %h = "decode.experts_gate_up"(%n, %r) {layer = 0 : i64, gate = "0.gate", up = "0.up", function = "swiglu_clamped", alpha = 1.702 : f64, limit = 7.0 : f64, experts = 8 : i64, used = 2 : i64, gate_bias = "0.gate_bias", up_bias = "0.gate_bias"} : (tensor<3x32xf32>, tensor<3x4xf32>) -> tensor<3x128xf32>
    %d = "decode.experts_down"(%h, %r) {layer = 0 : i64, weight = "0.down", experts = 8 : i64, used = 2 : i64, bias = "0.down_bias", scale_input = 1 : i64} : (tensor<3x128xf32>, tensor<3x4xf32>) -> tensor<3x32xf32>
    %y = "decode.add"(%d, %x) {layer = 0 : i64} : (tensor<3x32xf32>, tensor<3x32xf32>) -> tensor<3x32xf32>
    %last = "decode.last_token"(%y) : (tensor<3x32xf32>) -> tensor<1x32xf32>
    %fn = "decode.rms_norm"(%last) {weight = "norm", eps = 1.0e-05 : f64, segment = 32 : i64} : (tensor<1x32xf32>) -> tensor<1x32xf32>
    %logits = "decode.linear"(%fn) {weight = "embed"} : (tensor<1x32xf32>) -> tensor<1x48xf32>
    "decode.output"(%logits) {kind = "last", index = 0 : i64} : (tensor<1x48xf32>) -> ()
    "step.end"() : () -> ()
  }) {kind = "prefill", lanes = 1 : i64, width = 3 : i64, output = "last"} : () -> ()
}
