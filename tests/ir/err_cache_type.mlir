// A tensor where a cache belongs: IRDL refuses.
module {
  "decode.model"() {family = "llama", vocab = 32 : i64, hidden = 16 : i64, layers = 2 : i64, capacity = 8 : i64} : () -> ()
  "decode.step"() ({
    %i = "decode.ids"() : () -> tensor<1xi32>
    "decode.cache_store"(%i) {layer = 0 : i64, group = 0 : i64} : (tensor<1xi32>) -> ()
    "step.end"() : () -> ()
  }) {kind = "decode", lanes = 1 : i64, width = 1 : i64, output = "none"} : () -> ()
}
