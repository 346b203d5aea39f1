// An op with no module around it.
"decode.model"() {family = "llama"} : () -> ()
