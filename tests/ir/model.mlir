// Every op of the model level.
module {
  "decode.model"() {family = "llama", vocab = 32 : i64, hidden = 16 : i64, layers = 2 : i64, capacity = 8 : i64} : () -> ()
  "decode.group"() {index = 0 : i64, kind = "full", kv_heads = 1 : i64, key_head = 8 : i64, value_head = 8 : i64, key_scheme = "f32", value_scheme = "f32", capacity = 8 : i64, window = 0 : i64, page_tokens = 8 : i64} : () -> ()
  "decode.group"() {index = 1 : i64, kind = "window", kv_heads = 1 : i64, key_head = 8 : i64, value_head = 8 : i64, key_scheme = "bf16", value_scheme = "f16", capacity = 8 : i64, window = 5 : i64, page_tokens = 4 : i64} : () -> ()
  "decode.rope_table"() {index = 0 : i64, rule = "fixed", rotary = 8 : i64, base = 1.0e4 : f64, weight = "rope.0"} : () -> ()
  "decode.rope_table"() {index = 1 : i64, rule = "dynamic", rotary = 4 : i64, base = 1.0e4 : f64, factor = 2.0 : f64, original = 8 : i64, attention_factor = 1.0 : f64} : () -> ()
  "decode.weight"() {name = "rope.0", scheme = "f32", rows = 8 : i64, columns = 8 : i64} : () -> ()
  "decode.weight"() {name = "embed", scheme = "f16", rows = 32 : i64, columns = 16 : i64, embedding = 1 : i64} : () -> ()
  "decode.weight"() {name = "norm", scheme = "f32", rows = 1 : i64, columns = 16 : i64} : () -> ()
  "decode.weight"() {name = "head_norm", scheme = "f32", rows = 1 : i64, columns = 8 : i64} : () -> ()
  "decode.weight"() {name = "q", scheme = "f16", rows = 16 : i64, columns = 16 : i64} : () -> ()
  "decode.weight"() {name = "q_bias", scheme = "f32", rows = 1 : i64, columns = 16 : i64} : () -> ()
  "decode.weight"() {name = "k", scheme = "f16", rows = 8 : i64, columns = 16 : i64} : () -> ()
  "decode.weight"() {name = "a \"quoted\" name with \\ and \n", scheme = "bf16", rows = 8 : i64, columns = 16 : i64} : () -> ()

  "decode.step"() ({
    %ids = "decode.ids"() : () -> tensor<1xi32>
    %x = "decode.embed"(%ids) {weight = "embed", scale = 1.0 : f64} : (tensor<1xi32>) -> tensor<1x16xf32>
    %n = "decode.rms_norm"(%x) {layer = 0 : i64, weight = "norm", eps = 1.0e-5 : f64, segment = 16 : i64} : (tensor<1x16xf32>) -> tensor<1x16xf32>
    %q = "decode.linear"(%n) {layer = 0 : i64, weight = "q", bias = "q_bias"} : (tensor<1x16xf32>) -> tensor<1x16xf32>
    %k = "decode.linear"(%x) {layer = 0 : i64, weight = "k", norm = "norm", eps = 1.0e-5 : f64} : (tensor<1x16xf32>) -> tensor<1x8xf32>
    %v = "decode.linear"(%n) {layer = 0 : i64, weight = "a \"quoted\" name with \\ and \n"} : (tensor<1x16xf32>) -> tensor<1x8xf32>
    %qn = "decode.rms_norm"(%q) {layer = 0 : i64, weight = "head_norm", eps = 1.0e-5 : f64, segment = 8 : i64} : (tensor<1x16xf32>) -> tensor<1x16xf32>
    %qr = "decode.rope"(%qn) {layer = 0 : i64, head = 8 : i64, rotary = 8 : i64, offset = 0 : i64, pairing = "halves", table = 0 : i64} : (tensor<1x16xf32>) -> tensor<1x16xf32>
    %kr = "decode.rope"(%k) {layer = 0 : i64, head = 8 : i64, rotary = 4 : i64, offset = 4 : i64, pairing = "interleaved", table = 1 : i64} : (tensor<1x8xf32>) -> tensor<1x8xf32>
    %c0 = "decode.cache"() {layer = 0 : i64, group = 0 : i64} : () -> !decode.cache
    %c1 = "decode.cache_update"(%c0, %kr, %v) {layer = 0 : i64, group = 0 : i64} : (!decode.cache, tensor<1x8xf32>, tensor<1x8xf32>) -> !decode.cache
    %a = "decode.attention"(%qr, %c1) {layer = 0 : i64, group = 0 : i64, heads = 2 : i64, scale = 0.35355339059327379 : f64, soft_cap = 0.0 : f64} : (tensor<1x16xf32>, !decode.cache) -> tensor<1x16xf32>
    %y = "decode.add"(%a, %x) {layer = 0 : i64} : (tensor<1x16xf32>, tensor<1x16xf32>) -> tensor<1x16xf32>
    %g = "decode.activation"(%y) {layer = 1 : i64, function = "gelu_tanh"} : (tensor<1x16xf32>) -> tensor<1x16xf32>
    %m = "decode.mul"(%g, %y) {layer = 1 : i64} : (tensor<1x16xf32>, tensor<1x16xf32>) -> tensor<1x16xf32>
    %d0 = "decode.cache"() {layer = 1 : i64, group = 1 : i64} : () -> !decode.cache
    %d1 = "decode.cache_update"(%d0, %k, %v) {layer = 1 : i64, group = 1 : i64} : (!decode.cache, tensor<1x8xf32>, tensor<1x8xf32>) -> !decode.cache
    %l = "decode.last_token"(%m) : (tensor<1x16xf32>) -> tensor<1x16xf32>
    %logits = "decode.linear"(%l) {weight = "embed"} : (tensor<1x16xf32>) -> tensor<1x32xf32>
    %t = "decode.argmax"(%logits) : (tensor<1x32xf32>) -> tensor<1xi32>
    "decode.output_token"(%t) : (tensor<1xi32>) -> ()
    "step.end"() : () -> ()
  }) {kind = "decode", lanes = 1 : i64, width = 1 : i64, output = "token"} : () -> ()

  "decode.step"() ({
    %ids = "decode.ids"() : () -> tensor<3xi32>
    %x = "decode.embed"(%ids) {weight = "embed", scale = 4.0 : f64} : (tensor<3xi32>) -> tensor<3x16xf32>
    "decode.output"(%x) {kind = "hidden", index = 0 : i64} : (tensor<3x16xf32>) -> ()
    %k = "decode.linear"(%x) {weight = "k"} : (tensor<3x16xf32>) -> tensor<3x8xf32>
    %c0 = "decode.cache"() {layer = 0 : i64, group = 0 : i64} : () -> !decode.cache
    %c1 = "decode.cache_update"(%c0, %k, %k) {layer = 0 : i64, group = 0 : i64} : (!decode.cache, tensor<3x8xf32>, tensor<3x8xf32>) -> !decode.cache
    "decode.output"(%x) {kind = "hidden", index = 1 : i64} : (tensor<3x16xf32>) -> ()
    %d0 = "decode.cache"() {layer = 1 : i64, group = 1 : i64} : () -> !decode.cache
    %d1 = "decode.cache_update"(%d0, %k, %k) {layer = 1 : i64, group = 1 : i64} : (!decode.cache, tensor<3x8xf32>, tensor<3x8xf32>) -> !decode.cache
    "decode.output"(%x) {kind = "hidden", index = 2 : i64} : (tensor<3x16xf32>) -> ()
    "step.end"() : () -> ()
  }) {kind = "prefill", lanes = 1 : i64, width = 3 : i64, output = "hidden"} : () -> ()
}
