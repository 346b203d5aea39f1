// More operands than the table says: IRDL refuses.
module {
  "decode.model"() {family = "llama", vocab = 32 : i64, hidden = 16 : i64, layers = 2 : i64, capacity = 8 : i64} : () -> ()
  "decode.step"() ({
    %i = "decode.ids"() : () -> tensor<1xi32>
    "decode.output_token"(%i, %i) : (tensor<1xi32>, tensor<1xi32>) -> ()
    "step.end"() : () -> ()
  }) {kind = "decode", lanes = 1 : i64, width = 1 : i64, output = "none"} : () -> ()
}
