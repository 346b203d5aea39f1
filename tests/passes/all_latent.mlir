// Latent attention with its compressed cache, sinks, and a norm behind the output: every pass.
// options: --print program
module {
  "decode.model"() {family = "other", vocab = 48 : i64, hidden = 32 : i64, layers = 1 : i64, capacity = 32 : i64} : () -> ()
  "decode.group"() {index = 0 : i64, kind = "full", kv_heads = 1 : i64, key_head = 24 : i64, value_head = 16 : i64, key_scheme = "f16", value_scheme = "f16", capacity = 32 : i64, window = 0 : i64, page_tokens = 16 : i64, value_in_key = 1 : i64} : () -> ()
  "decode.weight"() {name = "embed", scheme = "q4_0", rows = 48 : i64, columns = 32 : i64, embedding = 1 : i64} : () -> ()
  "decode.weight"() {name = "norm", scheme = "f32", rows = 1 : i64, columns = 32 : i64} : () -> ()
  "decode.weight"() {name = "q", scheme = "q4_0", rows = 32 : i64, columns = 32 : i64} : () -> ()
  "decode.weight"() {name = "k_up", scheme = "f16", rows = 32 : i64, columns = 8 : i64} : () -> ()
  "decode.weight"() {name = "v_up", scheme = "f16", rows = 32 : i64, columns = 16 : i64} : () -> ()
  "decode.weight"() {name = "kv_a", scheme = "q4_0", rows = 16 : i64, columns = 32 : i64} : () -> ()
  "decode.weight"() {name = "kv_norm", scheme = "f32", rows = 1 : i64, columns = 16 : i64} : () -> ()
  "decode.weight"() {name = "k_rope", scheme = "q4_0", rows = 8 : i64, columns = 32 : i64} : () -> ()
  "decode.weight"() {name = "o", scheme = "q4_0", rows = 32 : i64, columns = 32 : i64} : () -> ()
  "decode.weight"() {name = "sinks", scheme = "f32", rows = 1 : i64, columns = 2 : i64} : () -> ()
  "decode.weight"() {name = "rope.0", scheme = "f32", rows = 32 : i64, columns = 8 : i64} : () -> ()
  "decode.rope_table"() {index = 0 : i64, rule = "fixed", rotary = 8 : i64, base = 10000.0 : f64, weight = "rope.0"} : () -> ()
  "decode.step"() ({
    %v0 = "decode.ids"() {} : () -> tensor<1xi32>
    %v1 = "decode.embed"(%v0) {weight = "embed", scale = 1.0 : f64} : (tensor<1xi32>) -> tensor<1x32xf32>
    %v2 = "decode.rms_norm"(%v1) {weight = "norm", eps = 1.0e-05 : f64, segment = 32 : i64, layer = 0 : i64} : (tensor<1x32xf32>) -> tensor<1x32xf32>
    %v3 = "decode.linear"(%v2) {weight = "q", layer = 0 : i64} : (tensor<1x32xf32>) -> tensor<1x32xf32>
    %v4 = "decode.rms_norm"(%v3) {weight = "norm", eps = 1.0e-05 : f64, segment = 32 : i64, layer = 0 : i64} : (tensor<1x32xf32>) -> tensor<1x32xf32>
    %v5 = "decode.linear"(%v4) {weight = "q", layer = 0 : i64} : (tensor<1x32xf32>) -> tensor<1x32xf32>
    %v6 = "decode.head_linear"(%v5) {heads = 2 : i64, weight = "k_up", kept = 8 : i64, layer = 0 : i64} : (tensor<1x32xf32>) -> tensor<1x48xf32>
    %v7 = "decode.linear"(%v2) {weight = "kv_a", layer = 0 : i64} : (tensor<1x32xf32>) -> tensor<1x16xf32>
    %v8 = "decode.rms_norm"(%v7) {weight = "kv_norm", eps = 1.0e-05 : f64, segment = 16 : i64, layer = 0 : i64} : (tensor<1x16xf32>) -> tensor<1x16xf32>
    %v9 = "decode.linear"(%v2) {weight = "k_rope", layer = 0 : i64} : (tensor<1x32xf32>) -> tensor<1x8xf32>
    %v10 = "decode.concat"(%v8, %v9) {head = 24 : i64, layer = 0 : i64} : (tensor<1x16xf32>, tensor<1x8xf32>) -> tensor<1x24xf32>
    %v11 = "decode.rope"(%v6) {head = 24 : i64, rotary = 8 : i64, offset = 16 : i64, pairing = "interleaved", table = 0 : i64, layer = 0 : i64} : (tensor<1x48xf32>) -> tensor<1x48xf32>
    %v12 = "decode.rope"(%v10) {head = 24 : i64, rotary = 8 : i64, offset = 16 : i64, pairing = "interleaved", table = 0 : i64, layer = 0 : i64} : (tensor<1x24xf32>) -> tensor<1x24xf32>
    %v13 = "decode.cache"() {group = 0 : i64, layer = 0 : i64} : () -> !decode.cache
    %v14 = "decode.cache_update"(%v13, %v12) {group = 0 : i64, layer = 0 : i64} : (!decode.cache, tensor<1x24xf32>) -> !decode.cache
    %v15 = "decode.attention"(%v11, %v14) {group = 0 : i64, heads = 2 : i64, scale = 0.25 : f64, soft_cap = 0.0 : f64, sinks = "sinks", query_scale = 0.1 : f64, query_floor = 4.0 : f64, layer = 0 : i64} : (tensor<1x48xf32>, !decode.cache) -> tensor<1x32xf32>
    %v16 = "decode.head_linear"(%v15) {heads = 2 : i64, weight = "v_up", kept = 0 : i64, layer = 0 : i64} : (tensor<1x32xf32>) -> tensor<1x32xf32>
    %v17 = "decode.linear"(%v16) {weight = "o", layer = 0 : i64} : (tensor<1x32xf32>) -> tensor<1x32xf32>
    %v18 = "decode.rms_norm"(%v17) {weight = "norm", eps = 1.0e-05 : f64, segment = 32 : i64, layer = 0 : i64} : (tensor<1x32xf32>) -> tensor<1x32xf32>
    %v19 = "decode.add"(%v1, %v18) {layer = 0 : i64} : (tensor<1x32xf32>, tensor<1x32xf32>) -> tensor<1x32xf32>
    %v20 = "decode.last_token"(%v19) {} : (tensor<1x32xf32>) -> tensor<1x32xf32>
    %v21 = "decode.linear"(%v20) {weight = "embed"} : (tensor<1x32xf32>) -> tensor<1x48xf32>
    %v22 = "decode.argmax"(%v21) {} : (tensor<1x48xf32>) -> tensor<1xi32>
    "decode.output_token"(%v22) {} : (tensor<1xi32>) -> ()
    "step.end"() : () -> ()
  }) {kind = "decode", lanes = 1 : i64, width = 1 : i64, output = "token"} : () -> ()
  "decode.step"() ({
    %v0 = "decode.ids"() {} : () -> tensor<20xi32>
    %v1 = "decode.embed"(%v0) {weight = "embed", scale = 1.0 : f64} : (tensor<20xi32>) -> tensor<20x32xf32>
    %v2 = "decode.rms_norm"(%v1) {weight = "norm", eps = 1.0e-05 : f64, segment = 32 : i64, layer = 0 : i64} : (tensor<20x32xf32>) -> tensor<20x32xf32>
    %v3 = "decode.linear"(%v2) {weight = "q", layer = 0 : i64} : (tensor<20x32xf32>) -> tensor<20x32xf32>
    %v4 = "decode.rms_norm"(%v3) {weight = "norm", eps = 1.0e-05 : f64, segment = 32 : i64, layer = 0 : i64} : (tensor<20x32xf32>) -> tensor<20x32xf32>
    %v5 = "decode.linear"(%v4) {weight = "q", layer = 0 : i64} : (tensor<20x32xf32>) -> tensor<20x32xf32>
    %v6 = "decode.head_linear"(%v5) {heads = 2 : i64, weight = "k_up", kept = 8 : i64, layer = 0 : i64} : (tensor<20x32xf32>) -> tensor<20x48xf32>
    %v7 = "decode.linear"(%v2) {weight = "kv_a", layer = 0 : i64} : (tensor<20x32xf32>) -> tensor<20x16xf32>
    %v8 = "decode.rms_norm"(%v7) {weight = "kv_norm", eps = 1.0e-05 : f64, segment = 16 : i64, layer = 0 : i64} : (tensor<20x16xf32>) -> tensor<20x16xf32>
    %v9 = "decode.linear"(%v2) {weight = "k_rope", layer = 0 : i64} : (tensor<20x32xf32>) -> tensor<20x8xf32>
    %v10 = "decode.concat"(%v8, %v9) {head = 24 : i64, layer = 0 : i64} : (tensor<20x16xf32>, tensor<20x8xf32>) -> tensor<20x24xf32>
    %v11 = "decode.rope"(%v6) {head = 24 : i64, rotary = 8 : i64, offset = 16 : i64, pairing = "interleaved", table = 0 : i64, layer = 0 : i64} : (tensor<20x48xf32>) -> tensor<20x48xf32>
    %v12 = "decode.rope"(%v10) {head = 24 : i64, rotary = 8 : i64, offset = 16 : i64, pairing = "interleaved", table = 0 : i64, layer = 0 : i64} : (tensor<20x24xf32>) -> tensor<20x24xf32>
    %v13 = "decode.cache"() {group = 0 : i64, layer = 0 : i64} : () -> !decode.cache
    %v14 = "decode.cache_update"(%v13, %v12) {group = 0 : i64, layer = 0 : i64} : (!decode.cache, tensor<20x24xf32>) -> !decode.cache
    %v15 = "decode.attention"(%v11, %v14) {group = 0 : i64, heads = 2 : i64, scale = 0.25 : f64, soft_cap = 0.0 : f64, sinks = "sinks", query_scale = 0.1 : f64, query_floor = 4.0 : f64, layer = 0 : i64} : (tensor<20x48xf32>, !decode.cache) -> tensor<20x32xf32>
    %v16 = "decode.head_linear"(%v15) {heads = 2 : i64, weight = "v_up", kept = 0 : i64, layer = 0 : i64} : (tensor<20x32xf32>) -> tensor<20x32xf32>
    %v17 = "decode.linear"(%v16) {weight = "o", layer = 0 : i64} : (tensor<20x32xf32>) -> tensor<20x32xf32>
    %v18 = "decode.rms_norm"(%v17) {weight = "norm", eps = 1.0e-05 : f64, segment = 32 : i64, layer = 0 : i64} : (tensor<20x32xf32>) -> tensor<20x32xf32>
    %v19 = "decode.add"(%v1, %v18) {layer = 0 : i64} : (tensor<20x32xf32>, tensor<20x32xf32>) -> tensor<20x32xf32>
    "step.end"() : () -> ()
  }) {kind = "prefill", lanes = 1 : i64, width = 20 : i64, output = "none"} : () -> ()
}
