// Ops of layers that are not llama's, with what does not fit.
module {
  "decode.model"() {family = "other", vocab = 32 : i64, hidden = 16 : i64, layers = 2 : i64, capacity = 8 : i64} : () -> ()
  "decode.group"() {index = 0 : i64, kind = "full", kv_heads = 1 : i64, key_head = 8 : i64, value_head = 12 : i64, key_scheme = "f16", value_scheme = "f32", capacity = 8 : i64, window = 0 : i64, page_tokens = 8 : i64, value_in_key = 1 : i64} : () -> ()
  "decode.group"() {index = 1 : i64, kind = "full", kv_heads = 1 : i64, key_head = 8 : i64, value_head = 8 : i64, key_scheme = "f16", value_scheme = "f16", capacity = 8 : i64, window = 0 : i64, page_tokens = 8 : i64} : () -> ()
  "decode.weight"() {name = "embed", scheme = "f16", rows = 32 : i64, columns = 16 : i64, embedding = 1 : i64} : () -> ()
  "decode.weight"() {name = "positions", scheme = "f32", rows = 9 : i64, columns = 16 : i64} : () -> ()
  "decode.weight"() {name = "norm", scheme = "f32", rows = 1 : i64, columns = 16 : i64} : () -> ()
  "decode.weight"() {name = "short", scheme = "f32", rows = 1 : i64, columns = 4 : i64} : () -> ()
  "decode.weight"() {name = "k", scheme = "f32", rows = 8 : i64, columns = 16 : i64} : () -> ()
  "decode.weight"() {name = "k_up", scheme = "f32", rows = 15 : i64, columns = 6 : i64} : () -> ()
  "decode.weight"() {name = "sinks", scheme = "f32", rows = 1 : i64, columns = 3 : i64} : () -> ()

  "decode.step"() ({
    %ids = "decode.ids"() : () -> tensor<1xi32>
    %e = "decode.embed"(%ids) {weight = "embed", scale = 1.0 : f64} : (tensor<1xi32>) -> tensor<1x16xf32>
    %x = "decode.position_embed"(%e) {weight = "positions", offset = 2 : i64} : (tensor<1x16xf32>) -> tensor<1x16xf32>
    %n = "decode.layer_norm"(%x) {weight = "short", bias = "short", eps = 1.0e-5 : f64, segment = 8 : i64} : (tensor<1x16xf32>) -> tensor<1x16xf32>
    %k = "decode.linear"(%n) {weight = "k", norm_bias = "norm", center = 1 : i64} : (tensor<1x16xf32>) -> tensor<1x8xf32>
    %h1 = "decode.head_linear"(%x) {heads = 3 : i64, weight = "k_up", kept = 0 : i64} : (tensor<1x16xf32>) -> tensor<1x16xf32>
    %h2 = "decode.head_linear"(%x) {heads = 2 : i64, weight = "k_up", kept = 2 : i64} : (tensor<1x16xf32>) -> tensor<1x16xf32>
    %cc = "decode.concat"(%x, %k) {head = 5 : i64} : (tensor<1x16xf32>, tensor<1x8xf32>) -> tensor<1x24xf32>
    %s = "decode.scale"(%x) {factor = 0x7FF8000000000000 : f64} : (tensor<1x16xf32>) -> tensor<1x16xf32>
    %t = "decode.soft_cap"(%x) {cap = 0.0 : f64} : (tensor<1x16xf32>) -> tensor<1x16xf32>
    %c0 = "decode.cache"() {layer = 0 : i64, group = 0 : i64} : () -> !decode.cache
    %c1 = "decode.cache_update"(%c0, %k, %k) {layer = 0 : i64, group = 0 : i64} : (!decode.cache, tensor<1x8xf32>, tensor<1x8xf32>) -> !decode.cache
    %d0 = "decode.cache"() {layer = 1 : i64, group = 1 : i64} : () -> !decode.cache
    %d1 = "decode.cache_update"(%d0, %k) {layer = 1 : i64, group = 1 : i64} : (!decode.cache, tensor<1x8xf32>) -> !decode.cache
    %a = "decode.attention"(%x, %d1) {layer = 1 : i64, group = 1 : i64, heads = 2 : i64, scale = 1.0 : f64, soft_cap = 0.0 : f64, sinks = "sinks", query_scale = 0x7FF8000000000000 : f64} : (tensor<1x16xf32>, !decode.cache) -> tensor<1x16xf32>
    %b = "decode.attention"(%x, %d1) {layer = 1 : i64, group = 1 : i64, heads = 2 : i64, scale = 1.0 : f64, soft_cap = 0.0 : f64, query_scale = 0.1 : f64, query_floor = 0.0 : f64} : (tensor<1x16xf32>, !decode.cache) -> tensor<1x16xf32>
    "step.end"() : () -> ()
  }) {kind = "decode", lanes = 1 : i64, width = 1 : i64, output = "none"} : () -> ()
}
