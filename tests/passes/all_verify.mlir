// A verify step: the choice of a token at each position goes into the output matrix.
// options: --print program
module {
  "decode.model"() {family = "llama", vocab = 48 : i64, hidden = 32 : i64, layers = 1 : i64, capacity = 32 : i64} : () -> ()
  "decode.group"() {index = 0 : i64, kind = "full", kv_heads = 1 : i64, key_head = 16 : i64, value_head = 16 : i64, key_scheme = "f32", value_scheme = "f32", capacity = 32 : i64, window = 0 : i64, page_tokens = 16 : i64} : () -> ()
  "decode.rope_table"() {index = 0 : i64, rule = "fixed", rotary = 16 : i64, base = 1.0e+04 : f64, weight = "rope.0"} : () -> ()
  "decode.weight"() {name = "rope.0", scheme = "f32", rows = 32 : i64, columns = 16 : i64} : () -> ()
  "decode.weight"() {name = "embed", scheme = "f32", rows = 48 : i64, columns = 32 : i64, embedding = 1 : i64} : () -> ()
  "decode.weight"() {name = "0.attn_norm", scheme = "f32", rows = 1 : i64, columns = 32 : i64} : () -> ()
  "decode.weight"() {name = "0.q", scheme = "f32", rows = 32 : i64, columns = 32 : i64} : () -> ()
  "decode.weight"() {name = "0.k", scheme = "f32", rows = 16 : i64, columns = 32 : i64} : () -> ()
  "decode.weight"() {name = "0.v", scheme = "f32", rows = 16 : i64, columns = 32 : i64} : () -> ()
  "decode.weight"() {name = "0.q_norm", scheme = "f32", rows = 1 : i64, columns = 16 : i64} : () -> ()
  "decode.weight"() {name = "0.k_norm", scheme = "f32", rows = 1 : i64, columns = 16 : i64} : () -> ()
  "decode.weight"() {name = "0.o", scheme = "f32", rows = 32 : i64, columns = 32 : i64} : () -> ()
  "decode.weight"() {name = "0.mlp_norm", scheme = "f32", rows = 1 : i64, columns = 32 : i64} : () -> ()
  "decode.weight"() {name = "0.gate", scheme = "f32", rows = 64 : i64, columns = 32 : i64} : () -> ()
  "decode.weight"() {name = "0.up", scheme = "f32", rows = 64 : i64, columns = 32 : i64} : () -> ()
  "decode.weight"() {name = "0.down", scheme = "f32", rows = 32 : i64, columns = 64 : i64} : () -> ()
  "decode.weight"() {name = "norm", scheme = "f32", rows = 1 : i64, columns = 32 : i64} : () -> ()
  "decode.weight"() {name = "head", scheme = "f32", rows = 48 : i64, columns = 32 : i64} : () -> ()
  "decode.step"() ({
    %ids = "decode.ids"() : () -> tensor<8xi32>
    %h0 = "decode.embed"(%ids) {weight = "embed", scale = 1.0 : f64} : (tensor<8xi32>) -> tensor<8x32xf32>
    %n0 = "decode.rms_norm"(%h0) {weight = "0.attn_norm", eps = 1.0e-05 : f64, segment = 32 : i64, layer = 0 : i64} : (tensor<8x32xf32>) -> tensor<8x32xf32>
    %q0 = "decode.linear"(%n0) {weight = "0.q", layer = 0 : i64} : (tensor<8x32xf32>) -> tensor<8x32xf32>
    %k0 = "decode.linear"(%n0) {weight = "0.k", layer = 0 : i64} : (tensor<8x32xf32>) -> tensor<8x16xf32>
    %v0 = "decode.linear"(%n0) {weight = "0.v", layer = 0 : i64} : (tensor<8x32xf32>) -> tensor<8x16xf32>
    %q0n = "decode.rms_norm"(%q0) {weight = "0.q_norm", eps = 1.0e-05 : f64, segment = 16 : i64, layer = 0 : i64} : (tensor<8x32xf32>) -> tensor<8x32xf32>
    %k0n = "decode.rms_norm"(%k0) {weight = "0.k_norm", eps = 1.0e-05 : f64, segment = 16 : i64, layer = 0 : i64} : (tensor<8x16xf32>) -> tensor<8x16xf32>
    %q0nr = "decode.rope"(%q0n) {head = 16 : i64, rotary = 16 : i64, offset = 0 : i64, pairing = "halves", table = 0 : i64, layer = 0 : i64} : (tensor<8x32xf32>) -> tensor<8x32xf32>
    %k0nr = "decode.rope"(%k0n) {head = 16 : i64, rotary = 16 : i64, offset = 0 : i64, pairing = "halves", table = 0 : i64, layer = 0 : i64} : (tensor<8x16xf32>) -> tensor<8x16xf32>
    %c0 = "decode.cache"() {layer = 0 : i64, group = 0 : i64} : () -> !decode.cache
    %d0 = "decode.cache_update"(%c0, %k0nr, %v0) {layer = 0 : i64, group = 0 : i64} : (!decode.cache, tensor<8x16xf32>, tensor<8x16xf32>) -> !decode.cache
    %a0 = "decode.attention"(%q0nr, %d0) {layer = 0 : i64, group = 0 : i64, heads = 2 : i64, scale = 2.5e-01 : f64, soft_cap = 0.0 : f64} : (tensor<8x32xf32>, !decode.cache) -> tensor<8x32xf32>
    %o0 = "decode.linear"(%a0) {weight = "0.o", layer = 0 : i64} : (tensor<8x32xf32>) -> tensor<8x32xf32>
    %x0 = "decode.add"(%o0, %h0) {layer = 0 : i64} : (tensor<8x32xf32>, tensor<8x32xf32>) -> tensor<8x32xf32>
    %m0 = "decode.rms_norm"(%x0) {weight = "0.mlp_norm", eps = 1.0e-05 : f64, segment = 32 : i64, layer = 0 : i64} : (tensor<8x32xf32>) -> tensor<8x32xf32>
    %g0 = "decode.linear"(%m0) {weight = "0.gate", layer = 0 : i64} : (tensor<8x32xf32>) -> tensor<8x64xf32>
    %u0 = "decode.linear"(%m0) {weight = "0.up", layer = 0 : i64} : (tensor<8x32xf32>) -> tensor<8x64xf32>
    %s0 = "decode.activation"(%g0) {function = "silu", layer = 0 : i64} : (tensor<8x64xf32>) -> tensor<8x64xf32>
    %p0 = "decode.mul"(%s0, %u0) {layer = 0 : i64} : (tensor<8x64xf32>, tensor<8x64xf32>) -> tensor<8x64xf32>
    %e0 = "decode.linear"(%p0) {weight = "0.down", layer = 0 : i64} : (tensor<8x64xf32>) -> tensor<8x32xf32>
    %h1 = "decode.add"(%e0, %x0) {layer = 0 : i64} : (tensor<8x32xf32>, tensor<8x32xf32>) -> tensor<8x32xf32>
    %fn = "decode.rms_norm"(%h1) {weight = "norm", eps = 1.0e-05 : f64, segment = 32 : i64} : (tensor<8x32xf32>) -> tensor<8x32xf32>
    %logits = "decode.linear"(%fn) {weight = "head"} : (tensor<8x32xf32>) -> tensor<8x48xf32>
    %token = "decode.argmax"(%logits) : (tensor<8x48xf32>) -> tensor<8xi32>
    "decode.output_token"(%token) : (tensor<8xi32>) -> ()
    "step.end"() : () -> ()
  }) {kind = "verify", lanes = 1 : i64, width = 8 : i64, output = "token"} : () -> ()
}
