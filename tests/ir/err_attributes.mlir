// Attributes: unknown, missing, of the wrong kind, not there yet.
module {
  "decode.model"() {family = "llama", vocab = 32 : i64, hidden = 16 : i64, layers = 2 : i64, capacity = 8 : i64} : () -> ()
  "decode.group"() {index = 0 : i64, kind = "full", kv_heads = 1 : i64, key_head = 8 : i64, value_head = 8 : i64, key_scheme = "f32", value_scheme = "f32", capacity = 8 : i64, window = 0 : i64, page_tokens = 8 : i64} : () -> ()
  "decode.weight"() {name = "embed", scheme = "f32", rows = 32 : i64, columns = 16 : i64, embedding = 1 : i64} : () -> ()
  "decode.weight"() {scheme = "f32", rows = 1 : i32, columns = 16.0 : f64, color = "red", name = "zero\00byte"} : () -> ()
  "decode.rope_table"() {index = 0 : i64, rule = "dynamic", rotary = 8 : i64, base = 10000 : i64, original = 8 : i64, layer = 0 : i64} : () -> ()
  "decode.step"() ({
    %i = "decode.ids"() {tiles = 1 : i64} : () -> tensor<1xi32>
    %x = "decode.embed"(%i) {weight = "embed", buffer = [1.0]} : (tensor<1xi32>) -> tensor<1x16xf32>
    %y = "decode.rms_norm"(%x) {weight = 3 : i64, eps = 1.0 : f32, segment = "16"} : (tensor<1x16xf32>) -> tensor<1x16xf32>
    "step.end"() : () -> ()
  }) {kind = "decode", lanes = 1 : i64, width = 1 : i64, output = "none"} : () -> ()
}
