// Text that MLIR can't read.
module {
  "decode.model"() {family = "llama"
}
