"""Turns a file into a C array: embed.py INPUT OUTPUT NAME defines NAME and NAME_bytes."""
import sys

data = open(sys.argv[1], "rb").read()
name = sys.argv[3]
with open(sys.argv[2], "w") as out:
    out.write("#include <stddef.h>\n\n")
    out.write(f"extern const unsigned char {name}[];\nextern const size_t {name}_bytes;\n")
    out.write(f"_Alignas(16) const unsigned char {name}[] = {{\n")
    for i in range(0, len(data), 24):
        out.write(",".join(map(str, data[i:i + 24])) + ",\n")
    out.write(f"}};\nconst size_t {name}_bytes = {len(data)};\n")
