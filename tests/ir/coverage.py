#!/usr/bin/env python3
"""That the golden texts leave nothing out: coverage.py FOLDER SOURCE_ROOT

Every op of ops.def occurs in a NAME.out, and every message of the verifier in a NAME.err."""
import pathlib
import re
import sys


def ops(root):
    text = (root / "compiler/include/stele/ops.def").read_text()
    return re.findall(r'^OP\(\w+, "(\w+)"', text, re.M)


def messages(root):
    """(file, format string) of every fault, adjacent string literals joined."""
    table = (root / "compiler/include/stele/ops.def").read_text()
    gone = re.search(r'^OP\(\w+, "\w+", \w+, (?!SCHEDULED)', table, re.M)  # ops that end early
    for path in sorted((root / "compiler/ir").glob("verify*.c")):
        for call in re.findall(r"ir_fault\(([^;]*)\);", path.read_text()):
            for text in re.findall(r'((?:"(?:[^"\\]|\\.)*"|IR_TERMINATOR|\s)*"(?:[^"\\]|\\.)*"'
                                   r'(?:\s*IR_TERMINATOR\s*"[^"]*")?)', call):
                parts = re.findall(r'"((?:[^"\\]|\\.)*)"|(IR_TERMINATOR)', text)
                whole = "".join("step.end" if name else part for part, name in parts)
                if " " in whole and not (whole.startswith("is gone") and not gone):
                    yield path.name, whole


def pattern(text):
    pieces = re.split(r"%(?:\.\*s|lld|ld|[sugd])", text)
    return re.compile(".*".join(map(re.escape, pieces)), re.M)


def main():
    folder, root = map(pathlib.Path, sys.argv[1:3])
    out = "".join(p.read_text() for p in sorted(folder.glob("*.out")))
    err = "".join(p.read_text() for p in sorted(folder.glob("*.err")))
    missing = [f"op {op}" for op in ops(root) if f'"decode.{op}"' not in out]
    found = list(messages(root))
    missing += [f"{name}: {text}" for name, text in found if not pattern(text).search(err)]
    for line in missing:
        print("no golden text has", line)
    print(f"{len(ops(root))} ops, {len(found)} messages, {len(missing)} missing")
    return 1 if missing or len(found) < 50 else 0


if __name__ == "__main__":
    sys.exit(main())
