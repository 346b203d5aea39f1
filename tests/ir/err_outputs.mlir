// Outputs that are not what the step says.
module {
  "decode.model"() {family = "llama", vocab = 32 : i64, hidden = 16 : i64, layers = 2 : i64, capacity = 8 : i64} : () -> ()
  "decode.group"() {index = 0 : i64, kind = "full", kv_heads = 1 : i64, key_head = 8 : i64, value_head = 8 : i64, key_scheme = "f32", value_scheme = "f32", capacity = 8 : i64, window = 0 : i64, page_tokens = 8 : i64} : () -> ()
  "decode.weight"() {name = "embed", scheme = "f32", rows = 32 : i64, columns = 16 : i64, embedding = 1 : i64} : () -> ()
  "decode.step"() ({
    %i = "decode.ids"() : () -> tensor<1xi32>
    %x = "decode.embed"(%i) {weight = "embed", scale = 1.0 : f64} : (tensor<1xi32>) -> tensor<1x16xf32>
    "step.end"() : () -> ()
  }) {kind = "decode", lanes = 1 : i64, width = 1 : i64, output = "token"} : () -> ()
  "decode.step"() ({
    %i = "decode.ids"() : () -> tensor<1xi32>
    %x = "decode.embed"(%i) {weight = "embed", scale = 1.0 : f64} : (tensor<1xi32>) -> tensor<1x16xf32>
    "decode.output"(%x) {kind = "last", index = 0 : i64} : (tensor<1x16xf32>) -> ()
    "decode.output"(%x) {kind = "token", index = 0 : i64} : (tensor<1x16xf32>) -> ()
    "decode.output_token"(%i) : (tensor<1xi32>) -> ()
    "step.end"() : () -> ()
  }) {kind = "decode", lanes = 1 : i64, width = 1 : i64, output = "none"} : () -> ()
  "decode.step"() ({
    %i = "decode.ids"() : () -> tensor<1xi32>
    %x = "decode.embed"(%i) {weight = "embed", scale = 1.0 : f64} : (tensor<1xi32>) -> tensor<1x16xf32>
    "decode.output"(%x) {kind = "hidden", index = 3 : i64} : (tensor<1x16xf32>) -> ()
    "decode.output"(%x) {kind = "hidden", index = 1 : i64} : (tensor<1x16xf32>) -> ()
    "decode.output"(%x) {kind = "hidden", index = 1 : i64} : (tensor<1x16xf32>) -> ()
    "step.end"() : () -> ()
  }) {kind = "decode", lanes = 1 : i64, width = 1 : i64, output = "hidden"} : () -> ()
}
