#!/usr/bin/env python3
"""Writes a GGUF model again with its matrices in another type, from the dequantised weights.

    requantise.py MODEL.gguf TYPE OUT.gguf

4-bit types leave the embeddings, which are the last matrix too, as they were; F16 and Q8_0 take
everything but norms. Needs the package gguf.
"""
import sys

import gguf

LEAVE_EMBEDDINGS = {"Q4_0", "Q4_1"}


def copy_fields(reader, writer):
    for field in reader.fields.values():
        if field.name.startswith("GGUF.") or field.name == "general.architecture":
            continue
        kind = field.types[0]
        writer.add_key_value(field.name, field.contents(), kind,
                             field.types[-1] if kind == gguf.GGUFValueType.ARRAY else None)


def main(path, name, out):
    wanted = gguf.GGMLQuantizationType[name]
    reader = gguf.GGUFReader(path)
    writer = gguf.GGUFWriter(out, reader.get_field("general.architecture").contents())
    copy_fields(reader, writer)
    for tensor in reader.tensors:
        kept = len(tensor.shape) < 2 or (name in LEAVE_EMBEDDINGS and "embd" in tensor.name)
        data, kind = tensor.data, tensor.tensor_type
        if not kept:
            data, kind = gguf.quants.quantize(gguf.quants.dequantize(data, kind), wanted), wanted
        writer.add_tensor(tensor.name, data, raw_dtype=kind)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


main(*sys.argv[1:])
