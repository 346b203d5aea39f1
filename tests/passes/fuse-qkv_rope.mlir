// The ropes differ: keys turn interleaved, queries by halves.
module {
  "decode.model"() {capacity = 32 : i64, family = "llama", hidden = 32 : i64, layers = 1 : i64, vocab = 48 : i64} : () -> ()
  "decode.group"() {capacity = 32 : i64, index = 0 : i64, key_head = 16 : i64, key_scheme = "f16", kind = "full", kv_heads = 1 : i64, page_tokens = 16 : i64, value_head = 16 : i64, value_scheme = "f16", window = 0 : i64} : () -> ()
  "decode.rope_table"() {base = 1.000000e+04 : f64, index = 0 : i64, rotary = 16 : i64, rule = "fixed", weight = "rope.0"} : () -> ()
  "decode.weight"() {columns = 16 : i64, name = "rope.0", rows = 32 : i64, scheme = "f32"} : () -> ()
  "decode.weight"() {columns = 32 : i64, embedding = 1 : i64, name = "embed", rows = 48 : i64, scheme = "q4_0"} : () -> ()
  "decode.weight"() {columns = 32 : i64, name = "0.attn_norm", rows = 1 : i64, scheme = "f32"} : () -> ()
  "decode.weight"() {columns = 32 : i64, name = "0.q", rows = 32 : i64, scheme = "q4_0"} : () -> ()
  "decode.weight"() {columns = 32 : i64, name = "0.k", rows = 16 : i64, scheme = "q4_0"} : () -> ()
  "decode.weight"() {columns = 32 : i64, name = "0.v", rows = 16 : i64, scheme = "q4_0"} : () -> ()
  "decode.weight"() {columns = 32 : i64, name = "0.o", rows = 32 : i64, scheme = "q4_0"} : () -> ()
  "decode.weight"() {columns = 32 : i64, name = "0.mlp_norm", rows = 1 : i64, scheme = "f32"} : () -> ()
  "decode.weight"() {columns = 32 : i64, name = "0.gate", rows = 64 : i64, scheme = "q4_0"} : () -> ()
  "decode.weight"() {columns = 32 : i64, name = "0.up", rows = 64 : i64, scheme = "q4_0"} : () -> ()
  "decode.weight"() {columns = 64 : i64, name = "0.down", rows = 32 : i64, scheme = "q4_0"} : () -> ()
  "decode.weight"() {columns = 32 : i64, name = "norm", rows = 1 : i64, scheme = "f32"} : () -> ()
  "decode.step"() ({
    %0 = "decode.ids"() : () -> tensor<1xi32>
    %1 = "decode.embed"(%0) {scale = 1.000000e+00 : f64, weight = "embed"} : (tensor<1xi32>) -> tensor<1x32xf32>
    %2 = "decode.linear"(%1) {eps = 1.000000e-05 : f64, layer = 0 : i64, norm = "0.attn_norm", weight = "0.q"} : (tensor<1x32xf32>) -> tensor<1x32xf32>
    %3 = "decode.linear"(%1) {eps = 1.000000e-05 : f64, layer = 0 : i64, norm = "0.attn_norm", weight = "0.k"} : (tensor<1x32xf32>) -> tensor<1x16xf32>
    %4 = "decode.linear"(%1) {eps = 1.000000e-05 : f64, layer = 0 : i64, norm = "0.attn_norm", weight = "0.v"} : (tensor<1x32xf32>) -> tensor<1x16xf32>
    %5 = "decode.rope"(%2) {head = 16 : i64, layer = 0 : i64, offset = 0 : i64, pairing = "halves", rotary = 16 : i64, table = 0 : i64} : (tensor<1x32xf32>) -> tensor<1x32xf32>
    %6 = "decode.rope"(%3) {head = 16 : i64, layer = 0 : i64, offset = 0 : i64, pairing = "interleaved", rotary = 16 : i64, table = 0 : i64} : (tensor<1x16xf32>) -> tensor<1x16xf32>
    %7 = "decode.cache"() {group = 0 : i64, layer = 0 : i64} : () -> !decode.cache
    %8 = "decode.cache_update"(%7, %6, %4) {group = 0 : i64, layer = 0 : i64} : (!decode.cache, tensor<1x16xf32>, tensor<1x16xf32>) -> !decode.cache
    %9 = "decode.attention"(%5, %8) {group = 0 : i64, heads = 2 : i64, layer = 0 : i64, scale = 2.500000e-01 : f64, soft_cap = 0.000000e+00 : f64} : (tensor<1x32xf32>, !decode.cache) -> tensor<1x32xf32>
    %10 = "decode.linear"(%9) {layer = 0 : i64, weight = "0.o"} : (tensor<1x32xf32>) -> tensor<1x32xf32>
    %11 = "decode.add"(%10, %1) {layer = 0 : i64} : (tensor<1x32xf32>, tensor<1x32xf32>) -> tensor<1x32xf32>
    %12 = "decode.linear"(%11) {eps = 1.000000e-05 : f64, layer = 0 : i64, norm = "0.mlp_norm", weight = "0.gate"} : (tensor<1x32xf32>) -> tensor<1x64xf32>
    %13 = "decode.linear"(%11) {eps = 1.000000e-05 : f64, layer = 0 : i64, norm = "0.mlp_norm", weight = "0.up"} : (tensor<1x32xf32>) -> tensor<1x64xf32>
    %14 = "decode.activation"(%12) {function = "silu", layer = 0 : i64} : (tensor<1x64xf32>) -> tensor<1x64xf32>
    %15 = "decode.mul"(%14, %13) {layer = 0 : i64} : (tensor<1x64xf32>, tensor<1x64xf32>) -> tensor<1x64xf32>
    %16 = "decode.linear"(%15) {layer = 0 : i64, weight = "0.down"} : (tensor<1x64xf32>) -> tensor<1x32xf32>
    %17 = "decode.add"(%16, %11) {layer = 0 : i64} : (tensor<1x32xf32>, tensor<1x32xf32>) -> tensor<1x32xf32>
    %18 = "decode.linear"(%17) {eps = 1.000000e-05 : f64, norm = "norm", weight = "embed"} : (tensor<1x32xf32>) -> tensor<1x48xf32>
    %19 = "decode.argmax"(%18) : (tensor<1x48xf32>) -> tensor<1xi32>
    "decode.output_token"(%19) : (tensor<1xi32>) -> ()
    "step.end"() : () -> ()
  }) {kind = "decode", lanes = 1 : i64, output = "token", width = 1 : i64} : () -> ()
}
