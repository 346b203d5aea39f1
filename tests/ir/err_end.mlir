// Steps that don't end as they should.
module {
  "decode.model"() {family = "llama", vocab = 32 : i64, hidden = 16 : i64, layers = 2 : i64, capacity = 8 : i64} : () -> ()
  "decode.step"() ({
    "foo.end"() : () -> ()
  }) {kind = "decode", lanes = 1 : i64, width = 1 : i64, output = "none"} : () -> ()
  "decode.step"() ({
    "step.end"() : () -> ()
    %i = "decode.ids"() : () -> tensor<2xi32>
    "step.end"() : () -> ()
  }) {kind = "decode", lanes = 2 : i64, width = 1 : i64, output = "none"} : () -> ()
}
