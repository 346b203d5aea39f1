// Shapes that do not meet.
module {
  "decode.model"() {family = "llama", vocab = 32 : i64, hidden = 16 : i64, layers = 2 : i64, capacity = 8 : i64} : () -> ()
  "decode.group"() {index = 0 : i64, kind = "full", kv_heads = 1 : i64, key_head = 8 : i64, value_head = 8 : i64, key_scheme = "f32", value_scheme = "f32", capacity = 8 : i64, window = 0 : i64, page_tokens = 8 : i64} : () -> ()
  "decode.weight"() {name = "embed", scheme = "f32", rows = 32 : i64, columns = 16 : i64, embedding = 1 : i64} : () -> ()
  "decode.weight"() {name = "k", scheme = "f32", rows = 8 : i64, columns = 16 : i64} : () -> ()
  "decode.weight"() {name = "norm", scheme = "f32", rows = 1 : i64, columns = 16 : i64} : () -> ()
  "decode.weight"() {name = "vector", scheme = "f32", rows = 2 : i64, columns = 4 : i64} : () -> ()
  "decode.weight"() {name = "rope", scheme = "f32", rows = 8 : i64, columns = 8 : i64} : () -> ()
  "decode.rope_table"() {index = 0 : i64, rule = "fixed", rotary = 8 : i64, base = 1.0e4 : f64, weight = "rope"} : () -> ()
  "decode.step"() ({
    %i = "decode.ids"() : () -> tensor<1xi32>
    %x = "decode.embed"(%i) {weight = "embed", scale = 1.0 : f64} : (tensor<1xi32>) -> tensor<1x16xf32>
    %j = "decode.ids"() : () -> tensor<3xi32>
    %e = "decode.embed"(%i) {weight = "k", scale = 0x7FF0000000000000 : f64} : (tensor<1xi32>) -> tensor<2x16xf32>
    %n1 = "decode.rms_norm"(%x) {weight = "vector", eps = -1.0 : f64, segment = 8 : i64} : (tensor<1x16xf32>) -> tensor<1x8xf32>
    %n2 = "decode.rms_norm"(%x) {weight = "nowhere", eps = 0.0 : f64, segment = 5 : i64} : (tensor<1x16xf32>) -> tensor<1x16xf32>
    %l1 = "decode.linear"(%x) {weight = "nowhere"} : (tensor<1x16xf32>) -> tensor<1x8xf32>
    %l2 = "decode.linear"(%x) {weight = "k", bias = "norm", norm = "norm"} : (tensor<1x16xf32>) -> tensor<1x9xf32>
    %l3 = "decode.linear"(%x) {weight = "k", eps = 0.5 : f64} : (tensor<1x16xf32>) -> tensor<1x8xf32>
    %r1 = "decode.rope"(%x) {head = 7 : i64, rotary = 8 : i64, offset = 0 : i64, pairing = "halves", table = 0 : i64} : (tensor<1x16xf32>) -> tensor<1x16xf32>
    %r2 = "decode.rope"(%x) {head = 8 : i64, rotary = 8 : i64, offset = 4 : i64, pairing = "thirds", table = 1 : i64} : (tensor<1x16xf32>) -> tensor<1x16xf32>
    %r3 = "decode.rope"(%x) {head = 8 : i64, rotary = 4 : i64, offset = 0 : i64, pairing = "halves", table = 0 : i64} : (tensor<1x16xf32>) -> tensor<1x16xf32>
    %f = "decode.activation"(%x) {function = "tanh"} : (tensor<1x16xf32>) -> tensor<1x16xf32>
    %m = "decode.mul"(%x, %l1) {layer = 5 : i64} : (tensor<1x16xf32>, tensor<1x8xf32>) -> tensor<1x16xf32>
    %t = "decode.last_token"(%e) : (tensor<2x16xf32>) -> tensor<2x16xf32>
    %g = "decode.argmax"(%x) : (tensor<1x16xf32>) -> tensor<1xi32>
    "step.end"() : () -> ()
  }) {kind = "decode", lanes = 1 : i64, width = 1 : i64, output = "none"} : () -> ()
}
