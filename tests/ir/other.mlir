// Ops of layers that are not llama's: centred norms, learned positions, keys that hold the values.
module {
  "decode.model"() {family = "other", vocab = 32 : i64, hidden = 16 : i64, layers = 2 : i64, capacity = 8 : i64} : () -> ()
  "decode.group"() {index = 0 : i64, kind = "full", kv_heads = 1 : i64, key_head = 10 : i64, value_head = 8 : i64, key_scheme = "f16", value_scheme = "f16", capacity = 8 : i64, window = 0 : i64, page_tokens = 8 : i64, value_in_key = 1 : i64} : () -> ()
  "decode.group"() {index = 1 : i64, kind = "chunk", kv_heads = 1 : i64, key_head = 8 : i64, value_head = 8 : i64, key_scheme = "f16", value_scheme = "f16", capacity = 8 : i64, window = 4 : i64, page_tokens = 4 : i64} : () -> ()
  "decode.weight"() {name = "embed", scheme = "f16", rows = 32 : i64, columns = 16 : i64, embedding = 1 : i64} : () -> ()
  "decode.weight"() {name = "positions", scheme = "f32", rows = 10 : i64, columns = 16 : i64, embedding = 1 : i64} : () -> ()
  "decode.weight"() {name = "norm", scheme = "f32", rows = 1 : i64, columns = 16 : i64} : () -> ()
  "decode.weight"() {name = "norm_bias", scheme = "f32", rows = 1 : i64, columns = 16 : i64} : () -> ()
  "decode.weight"() {name = "head_norm", scheme = "f32", rows = 1 : i64, columns = 8 : i64} : () -> ()
  "decode.weight"() {name = "q", scheme = "f32", rows = 16 : i64, columns = 16 : i64} : () -> ()
  "decode.weight"() {name = "kv_a", scheme = "f32", rows = 8 : i64, columns = 16 : i64} : () -> ()
  "decode.weight"() {name = "k_rope", scheme = "f32", rows = 2 : i64, columns = 16 : i64} : () -> ()
  "decode.weight"() {name = "k_up", scheme = "f32", rows = 16 : i64, columns = 6 : i64} : () -> ()
  "decode.weight"() {name = "v_up", scheme = "f32", rows = 16 : i64, columns = 8 : i64} : () -> ()
  "decode.weight"() {name = "sinks", scheme = "f32", rows = 1 : i64, columns = 2 : i64} : () -> ()
  "decode.weight"() {name = "v", scheme = "f32", rows = 8 : i64, columns = 16 : i64} : () -> ()

  "decode.step"() ({
    %ids = "decode.ids"() : () -> tensor<1xi32>
    %e = "decode.embed"(%ids) {weight = "embed", scale = 1.0 : f64} : (tensor<1xi32>) -> tensor<1x16xf32>
    %x = "decode.position_embed"(%e) {weight = "positions", offset = 2 : i64} : (tensor<1x16xf32>) -> tensor<1x16xf32>
    %n = "decode.layer_norm"(%x) {layer = 0 : i64, weight = "norm", bias = "norm_bias", eps = 1.0e-5 : f64, segment = 16 : i64} : (tensor<1x16xf32>) -> tensor<1x16xf32>
    %q = "decode.linear"(%n) {layer = 0 : i64, weight = "q"} : (tensor<1x16xf32>) -> tensor<1x16xf32>
    %qu = "decode.head_linear"(%q) {layer = 0 : i64, heads = 2 : i64, weight = "k_up", kept = 2 : i64} : (tensor<1x16xf32>) -> tensor<1x20xf32>
    %kv = "decode.linear"(%x) {layer = 0 : i64, weight = "kv_a", norm = "norm", norm_bias = "norm_bias", center = 1 : i64, eps = 1.0e-5 : f64} : (tensor<1x16xf32>) -> tensor<1x8xf32>
    %kn = "decode.rms_norm"(%kv) {layer = 0 : i64, weight = "head_norm", eps = 1.0e-6 : f64, segment = 8 : i64} : (tensor<1x8xf32>) -> tensor<1x8xf32>
    %kr = "decode.linear"(%n) {layer = 0 : i64, weight = "k_rope"} : (tensor<1x16xf32>) -> tensor<1x2xf32>
    %k = "decode.concat"(%kn, %kr) {layer = 0 : i64, head = 10 : i64} : (tensor<1x8xf32>, tensor<1x2xf32>) -> tensor<1x10xf32>
    %c0 = "decode.cache"() {layer = 0 : i64, group = 0 : i64} : () -> !decode.cache
    %c1 = "decode.cache_update"(%c0, %k) {layer = 0 : i64, group = 0 : i64} : (!decode.cache, tensor<1x10xf32>) -> !decode.cache
    %a = "decode.attention"(%qu, %c1) {layer = 0 : i64, group = 0 : i64, heads = 2 : i64, scale = 0.25 : f64, soft_cap = 0.0 : f64} : (tensor<1x20xf32>, !decode.cache) -> tensor<1x16xf32>
    %v = "decode.head_linear"(%a) {layer = 0 : i64, heads = 2 : i64, weight = "v_up", kept = 0 : i64} : (tensor<1x16xf32>) -> tensor<1x16xf32>
    %s = "decode.scale"(%v) {layer = 0 : i64, factor = 0.22 : f64} : (tensor<1x16xf32>) -> tensor<1x16xf32>
    %y = "decode.add"(%s, %x) {layer = 0 : i64} : (tensor<1x16xf32>, tensor<1x16xf32>) -> tensor<1x16xf32>
    %vv = "decode.linear"(%y) {layer = 1 : i64, weight = "v"} : (tensor<1x16xf32>) -> tensor<1x8xf32>
    %d0 = "decode.cache"() {layer = 1 : i64, group = 1 : i64} : () -> !decode.cache
    %d1 = "decode.cache_update"(%d0, %vv, %vv) {layer = 1 : i64, group = 1 : i64} : (!decode.cache, tensor<1x8xf32>, tensor<1x8xf32>) -> !decode.cache
    %b = "decode.attention"(%y, %d1) {layer = 1 : i64, group = 1 : i64, heads = 2 : i64, scale = 0.25 : f64, soft_cap = 0.0 : f64, sinks = "sinks", query_scale = 0.1 : f64, query_floor = 4.0 : f64} : (tensor<1x16xf32>, !decode.cache) -> tensor<1x16xf32>
    %logits = "decode.linear"(%b) {weight = "embed"} : (tensor<1x16xf32>) -> tensor<1x32xf32>
    %capped = "decode.soft_cap"(%logits) {cap = 30.0 : f64} : (tensor<1x32xf32>) -> tensor<1x32xf32>
    %t = "decode.argmax"(%capped) : (tensor<1x32xf32>) -> tensor<1xi32>
    "decode.output_token"(%t) : (tensor<1xi32>) -> ()
    "step.end"() : () -> ()
  }) {kind = "decode", lanes = 1 : i64, width = 1 : i64, output = "token"} : () -> ()
}
