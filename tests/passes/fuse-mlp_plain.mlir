// An activation without a product behind it.
module {
  "decode.model"() {family = "other", vocab = 48 : i64, hidden = 32 : i64, layers = 1 : i64, capacity = 32 : i64} : () -> ()
  "decode.group"() {index = 0 : i64, kind = "full", kv_heads = 1 : i64, key_head = 16 : i64, value_head = 16 : i64, key_scheme = "f16", value_scheme = "f16", capacity = 32 : i64, window = 0 : i64, page_tokens = 16 : i64} : () -> ()
  "decode.weight"() {name = "embed", scheme = "q4_0", rows = 48 : i64, columns = 32 : i64, embedding = 1 : i64} : () -> ()
  "decode.weight"() {name = "positions", scheme = "f16", rows = 34 : i64, columns = 32 : i64, embedding = 1 : i64} : () -> ()
  "decode.weight"() {name = "norm", scheme = "f32", rows = 1 : i64, columns = 32 : i64} : () -> ()
  "decode.weight"() {name = "norm_bias", scheme = "f32", rows = 1 : i64, columns = 32 : i64} : () -> ()
  "decode.weight"() {name = "q", scheme = "q4_0", rows = 32 : i64, columns = 32 : i64} : () -> ()
  "decode.weight"() {name = "k", scheme = "q4_0", rows = 16 : i64, columns = 32 : i64} : () -> ()
  "decode.weight"() {name = "v", scheme = "q4_0", rows = 16 : i64, columns = 32 : i64} : () -> ()
  "decode.weight"() {name = "o", scheme = "q4_0", rows = 32 : i64, columns = 32 : i64} : () -> ()
  "decode.weight"() {name = "o_bias", scheme = "f32", rows = 1 : i64, columns = 32 : i64} : () -> ()
  "decode.weight"() {name = "up", scheme = "q4_0", rows = 64 : i64, columns = 32 : i64} : () -> ()
  "decode.weight"() {name = "down", scheme = "q4_0", rows = 32 : i64, columns = 64 : i64} : () -> ()
  "decode.step"() ({
    %v0 = "decode.ids"() {} : () -> tensor<1xi32>
    %v1 = "decode.embed"(%v0) {weight = "embed", scale = 1.0 : f64} : (tensor<1xi32>) -> tensor<1x32xf32>
    %v2 = "decode.position_embed"(%v1) {weight = "positions", offset = 2 : i64} : (tensor<1x32xf32>) -> tensor<1x32xf32>
    %v3 = "decode.layer_norm"(%v2) {weight = "norm", bias = "norm_bias", eps = 1.0e-05 : f64, segment = 32 : i64, layer = 0 : i64} : (tensor<1x32xf32>) -> tensor<1x32xf32>
    %v4 = "decode.linear"(%v3) {weight = "q", bias = "o_bias", layer = 0 : i64} : (tensor<1x32xf32>) -> tensor<1x32xf32>
    %v5 = "decode.linear"(%v3) {weight = "k", layer = 0 : i64} : (tensor<1x32xf32>) -> tensor<1x16xf32>
    %v6 = "decode.linear"(%v3) {weight = "v", layer = 0 : i64} : (tensor<1x32xf32>) -> tensor<1x16xf32>
    %v7 = "decode.cache"() {group = 0 : i64, layer = 0 : i64} : () -> !decode.cache
    %v8 = "decode.cache_update"(%v7, %v5, %v6) {group = 0 : i64, layer = 0 : i64} : (!decode.cache, tensor<1x16xf32>, tensor<1x16xf32>) -> !decode.cache
    %v9 = "decode.attention"(%v4, %v8) {group = 0 : i64, heads = 2 : i64, scale = 0.25 : f64, soft_cap = 0.0 : f64, layer = 0 : i64} : (tensor<1x32xf32>, !decode.cache) -> tensor<1x32xf32>
    %v10 = "decode.linear"(%v9) {weight = "o", bias = "o_bias", layer = 0 : i64} : (tensor<1x32xf32>) -> tensor<1x32xf32>
    %v11 = "decode.add"(%v10, %v2) {layer = 0 : i64} : (tensor<1x32xf32>, tensor<1x32xf32>) -> tensor<1x32xf32>
    %v12 = "decode.layer_norm"(%v11) {weight = "norm", bias = "norm_bias", eps = 1.0e-05 : f64, segment = 32 : i64, layer = 0 : i64} : (tensor<1x32xf32>) -> tensor<1x32xf32>
    %v13 = "decode.linear"(%v12) {weight = "up", layer = 0 : i64} : (tensor<1x32xf32>) -> tensor<1x64xf32>
    %v14 = "decode.activation"(%v13) {function = "gelu_tanh", layer = 0 : i64} : (tensor<1x64xf32>) -> tensor<1x64xf32>
    %v15 = "decode.linear"(%v14) {weight = "down", layer = 0 : i64} : (tensor<1x64xf32>) -> tensor<1x32xf32>
    %v16 = "decode.add"(%v15, %v11) {layer = 0 : i64} : (tensor<1x32xf32>, tensor<1x32xf32>) -> tensor<1x32xf32>
    %v17 = "decode.last_token"(%v16) {} : (tensor<1x32xf32>) -> tensor<1x32xf32>
    %v18 = "decode.layer_norm"(%v17) {weight = "norm", eps = 1.0e-05 : f64, segment = 32 : i64} : (tensor<1x32xf32>) -> tensor<1x32xf32>
    %v19 = "decode.linear"(%v18) {weight = "embed"} : (tensor<1x32xf32>) -> tensor<1x48xf32>
    %v20 = "decode.scale"(%v19) {factor = 0.25 : f64} : (tensor<1x48xf32>) -> tensor<1x48xf32>
    %v21 = "decode.soft_cap"(%v20) {cap = 30.0 : f64} : (tensor<1x48xf32>) -> tensor<1x48xf32>
    "decode.output"(%v21) {kind = "last", index = 0 : i64} : (tensor<1x48xf32>) -> ()
    "step.end"() : () -> ()
  }) {kind = "decode", lanes = 1 : i64, width = 1 : i64, output = "last"} : () -> ()
}
