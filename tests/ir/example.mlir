module {
  "decode.model"() {family = "llama", vocab = 32 : i64, hidden = 16 : i64, layers = 1 : i64, capacity = 8 : i64} : () -> ()
  "decode.group"() {index = 0 : i64, kind = "full", kv_heads = 1 : i64, key_head = 8 : i64, value_head = 8 : i64, key_scheme = "f16", value_scheme = "f16", capacity = 8 : i64, window = 0 : i64, page_tokens = 8 : i64} : () -> ()
  "decode.rope_table"() {index = 0 : i64, rule = "fixed", rotary = 8 : i64, base = 1.0e4 : f64, weight = "rope.0"} : () -> ()
  "decode.weight"() {name = "rope.0", scheme = "f32", rows = 8 : i64, columns = 8 : i64} : () -> ()
  "decode.weight"() {name = "embed", scheme = "f16", rows = 32 : i64, columns = 16 : i64, embedding = 1 : i64} : () -> ()
  "decode.weight"() {name = "norm", scheme = "f32", rows = 1 : i64, columns = 16 : i64} : () -> ()
  "decode.weight"() {name = "q", scheme = "f16", rows = 16 : i64, columns = 16 : i64} : () -> ()
  "decode.weight"() {name = "k", scheme = "f16", rows = 8 : i64, columns = 16 : i64} : () -> ()
  "decode.weight"() {name = "v", scheme = "f16", rows = 8 : i64, columns = 16 : i64} : () -> ()

  "decode.step"() ({
    %ids = "decode.ids"() : () -> tensor<2xi32>
    %x = "decode.embed"(%ids) {weight = "embed", scale = 1.0 : f64} : (tensor<2xi32>) -> tensor<2x16xf32>
    %n = "decode.rms_norm"(%x) {layer = 0 : i64, weight = "norm", eps = 1.0e-5 : f64, segment = 16 : i64} : (tensor<2x16xf32>) -> tensor<2x16xf32>
    %q = "decode.linear"(%n) {layer = 0 : i64, weight = "q"} : (tensor<2x16xf32>) -> tensor<2x16xf32>
    %k = "decode.linear"(%n) {layer = 0 : i64, weight = "k"} : (tensor<2x16xf32>) -> tensor<2x8xf32>
    %v = "decode.linear"(%n) {layer = 0 : i64, weight = "v"} : (tensor<2x16xf32>) -> tensor<2x8xf32>
    %qr = "decode.rope"(%q) {layer = 0 : i64, head = 8 : i64, rotary = 8 : i64, offset = 0 : i64, pairing = "halves", table = 0 : i64} : (tensor<2x16xf32>) -> tensor<2x16xf32>
    %kr = "decode.rope"(%k) {layer = 0 : i64, head = 8 : i64, rotary = 8 : i64, offset = 0 : i64, pairing = "halves", table = 0 : i64} : (tensor<2x8xf32>) -> tensor<2x8xf32>
    %c0 = "decode.cache"() {layer = 0 : i64, group = 0 : i64} : () -> !decode.cache
    %c1 = "decode.cache_update"(%c0, %kr, %v) {layer = 0 : i64, group = 0 : i64} : (!decode.cache, tensor<2x8xf32>, tensor<2x8xf32>) -> !decode.cache
    %a = "decode.attention"(%qr, %c1) {layer = 0 : i64, group = 0 : i64, heads = 2 : i64, scale = 0.35355339059327379 : f64, soft_cap = 0.0 : f64} : (tensor<2x16xf32>, !decode.cache) -> tensor<2x16xf32>
    %y = "decode.add"(%a, %x) {layer = 0 : i64} : (tensor<2x16xf32>, tensor<2x16xf32>) -> tensor<2x16xf32>
    %l = "decode.last_token"(%y) : (tensor<2x16xf32>) -> tensor<2x16xf32>
    %h = "decode.rms_norm"(%l) {weight = "norm", eps = 1.0e-5 : f64, segment = 16 : i64} : (tensor<2x16xf32>) -> tensor<2x16xf32>
    %logits = "decode.linear"(%h) {weight = "embed"} : (tensor<2x16xf32>) -> tensor<2x32xf32>
    %t = "decode.argmax"(%logits) : (tensor<2x32xf32>) -> tensor<2xi32>
    "decode.output_token"(%t) : (tensor<2xi32>) -> ()
    "step.end"() : () -> ()
  }) {kind = "decode", lanes = 2 : i64, width = 1 : i64, output = "token"} : () -> ()
}
