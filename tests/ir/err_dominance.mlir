// A value used before it is made.
module {
  "decode.model"() {family = "llama", vocab = 32 : i64, hidden = 16 : i64, layers = 2 : i64, capacity = 8 : i64} : () -> ()
  "decode.step"() ({
    "decode.output_token"(%i) : (tensor<1xi32>) -> ()
    %i = "decode.ids"() : () -> tensor<1xi32>
    "step.end"() : () -> ()
  }) {kind = "decode", lanes = 1 : i64, width = 1 : i64, output = "token"} : () -> ()
}
