// Steps that no artefact can have.
module {
  "decode.model"() {family = "llama", vocab = 32 : i64, hidden = 16 : i64, layers = 2 : i64, capacity = 8 : i64} : () -> ()
  "decode.group"() {index = 0 : i64, kind = "full", kv_heads = 1 : i64, key_head = 8 : i64, value_head = 8 : i64, key_scheme = "f32", value_scheme = "f32", capacity = 8 : i64, window = 0 : i64, page_tokens = 8 : i64} : () -> ()
  "decode.step"() ({
    
    "step.end"() : () -> ()
  }) {kind = "sing", lanes = 0 : i64, width = 1 : i64, output = "loud"} : () -> ()
  "decode.step"() ({
    
    "step.end"() : () -> ()
  }) {kind = "decode", lanes = 1 : i64, width = 2 : i64, output = "none"} : () -> ()
  "decode.step"() ({
    
    "step.end"() : () -> ()
  }) {kind = "prefill", lanes = 2 : i64, width = 4 : i64, output = "none"} : () -> ()
  "decode.step"() ({
    
    "step.end"() : () -> ()
  }) {kind = "decode", lanes = 1 : i64, width = 1 : i64, output = "none"} : () -> ()
  "decode.step"() ({
    
    "step.end"() : () -> ()
  }) {kind = "decode", lanes = 1 : i64, width = 1 : i64, output = "none"} : () -> ()
  "decode.step"() ({
    
    "step.end"() : () -> ()
  }) {kind = "verify", lanes = 2 : i64, width = 4 : i64, output = "none"} : () -> ()
}
