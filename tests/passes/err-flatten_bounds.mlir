// The workspace that the step declares is too small for its buffers.
// options: --passes flatten
module {
  "decode.model"() {capacity = 32 : i64, family = "llama", hidden = 32 : i64, layers = 1 : i64, vocab = 48 : i64} : () -> ()
  "decode.group"() {capacity = 32 : i64, index = 0 : i64, key_head = 16 : i64, key_scheme = "f16", kind = "full", kv_heads = 1 : i64, page_tokens = 16 : i64, value_head = 16 : i64, value_scheme = "f16", window = 0 : i64} : () -> ()
  "decode.rope_table"() {base = 1.000000e+04 : f64, index = 0 : i64, rotary = 16 : i64, rule = "fixed", weight = "rope.0"} : () -> ()
  "decode.weight"() {columns = 16 : i64, layout = 0 : i64, name = "rope.0", rows = 32 : i64, scheme = "f32"} : () -> ()
  "decode.weight"() {columns = 32 : i64, embedding = 1 : i64, layout = 0 : i64, name = "embed", rows = 48 : i64, scheme = "q4_0"} : () -> ()
  "decode.weight"() {columns = 32 : i64, layout = 0 : i64, name = "0.attn_norm", rows = 1 : i64, scheme = "f32"} : () -> ()
  "decode.weight"() {columns = 32 : i64, layout = 1 : i64, name = "0.q", rows = 32 : i64, scheme = "q4_0"} : () -> ()
  "decode.weight"() {columns = 32 : i64, layout = 1 : i64, name = "0.k", rows = 16 : i64, scheme = "q4_0"} : () -> ()
  "decode.weight"() {columns = 32 : i64, layout = 1 : i64, name = "0.v", rows = 16 : i64, scheme = "q4_0"} : () -> ()
  "decode.weight"() {columns = 32 : i64, layout = 1 : i64, name = "0.o", rows = 32 : i64, scheme = "q4_0"} : () -> ()
  "decode.weight"() {columns = 32 : i64, layout = 0 : i64, name = "0.mlp_norm", rows = 1 : i64, scheme = "f32"} : () -> ()
  "decode.weight"() {columns = 32 : i64, layout = 1 : i64, name = "0.gate", rows = 64 : i64, scheme = "q4_0"} : () -> ()
  "decode.weight"() {columns = 32 : i64, layout = 1 : i64, name = "0.up", rows = 64 : i64, scheme = "q4_0"} : () -> ()
  "decode.weight"() {columns = 64 : i64, layout = 1 : i64, name = "0.down", rows = 32 : i64, scheme = "q4_0"} : () -> ()
  "decode.weight"() {columns = 32 : i64, layout = 0 : i64, name = "norm", rows = 1 : i64, scheme = "f32"} : () -> ()
  "decode.step"() ({
    %0 = "decode.ids"() : () -> tensor<1xi32>
    %1 = "decode.embed"(%0) {buffer = [576, 128, 1, 32, 0, 0], scale = 1.000000e+00 : f64, tile_rows = 1 : i64, tiles = 1 : i64, weight = "embed"} : (tensor<1xi32>) -> tensor<1x32xf32>
    %2 = "decode.cache"() {group = 0 : i64, layer = 0 : i64} : () -> !decode.cache
    %3:2 = "decode.qkv_cache"(%1, %2) {activation = "q8_0", barrier = 1 : i64, buffer = [320, 128, 1, 32, 0, 0], eps = 1.000000e-05 : f64, group = 0 : i64, heads = 2 : i64, k = "0.k", layer = 0 : i64, norm = "0.attn_norm", offset = 0 : i64, pairing = "halves", prepared = [0, 64, 1, 32, 3, 1], q = "0.q", rotary = 16 : i64, table = 0 : i64, tile_rows = 16 : i64, tiles = 4 : i64, v = "0.v"} : (tensor<1x32xf32>, !decode.cache) -> (tensor<1x32xf32>, !decode.cache)
    %4 = "decode.attention_partial"(%3#0, %3#1) {barrier = 1 : i64, buffer = [0, 320, 1, 72, 0, 0], group = 0 : i64, heads = 2 : i64, layer = 0 : i64, scale = 2.500000e-01 : f64, soft_cap = 0.000000e+00 : f64, tile_rows = 1 : i64, tiles = 2 : i64} : (tensor<1x32xf32>, !decode.cache) -> tensor<1x72xf32>
    %5 = "decode.linear_add"(%4, %1) {activation = "q8_0", barrier = 1 : i64, buffer = [576, 128, 1, 32, 0, 0], combine = 1 : i64, group = 0 : i64, heads = 2 : i64, layer = 0 : i64, prepared = [320, 64, 1, 32, 3, 1], tile_rows = 16 : i64, tiles = 2 : i64, weight = "0.o"} : (tensor<1x72xf32>, tensor<1x32xf32>) -> tensor<1x32xf32>
    %6 = "decode.gate_up"(%5) {activation = "q8_0", barrier = 1 : i64, buffer = [256, 128, 1, 64, 3, 0], eps = 1.000000e-05 : f64, function = "silu", gate = "0.gate", layer = 0 : i64, norm = "0.mlp_norm", prepared = [0, 64, 1, 32, 3, 1], result = "q8_0", tile_rows = 32 : i64, tiles = 2 : i64, up = "0.up"} : (tensor<1x32xf32>) -> tensor<1x64xf32>
    %7 = "decode.linear_add"(%6, %5) {activation = "q8_0", barrier = 1 : i64, buffer = [576, 128, 1, 32, 0, 0], layer = 0 : i64, tile_rows = 16 : i64, tiles = 2 : i64, weight = "0.down"} : (tensor<1x64xf32>, tensor<1x32xf32>) -> tensor<1x32xf32>
    %8 = "decode.linear_argmax"(%7) {activation = "q8_0", barrier = 1 : i64, buffer = [256, 64, 1, 1, 6, 0], eps = 1.000000e-05 : f64, norm = "norm", prepared = [0, 64, 1, 32, 3, 1], scratch = [320, 64, 3, 2, 0, 0], tile_rows = 16 : i64, tiles = 3 : i64, weight = "embed"} : (tensor<1x32xf32>) -> tensor<1xi32>
    "decode.output_token"(%8) {barrier = 1 : i64, tile_rows = 1 : i64, tiles = 1 : i64} : (tensor<1xi32>) -> ()
    "step.end"() : () -> ()
  }) {kind = "decode", lanes = 1 : i64, output = "token", width = 1 : i64, workspace = 64 : i64} : () -> ()
}
