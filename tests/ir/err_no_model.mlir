// Declarations without a model; the steps are not looked at.
module {
  "decode.group"() {index = 0 : i64, kind = "full", kv_heads = 1 : i64, key_head = 8 : i64, value_head = 8 : i64, key_scheme = "f32", value_scheme = "f32", capacity = 8 : i64, window = 0 : i64, page_tokens = 8 : i64} : () -> ()
  "decode.step"() ({
    "foo.bar"() : () -> ()
    "step.end"() : () -> ()
  }) {kind = "decode", lanes = 1 : i64, width = 1 : i64, output = "none"} : () -> ()
}
