#!/usr/bin/env python3
"""That the golden texts leave nothing out: coverage.py FOLDER SOURCE_ROOT

Every op of ops.def occurs in a NAME.out and has a section in IR.md that names its attributes,
every message of the verifier occurs in a NAME.err, and IR.md's example is example.mlir."""
import pathlib
import re
import sys


def ops(root):
    text = (root / "compiler/include/stele/ops.def").read_text()
    return re.findall(r'^OP\(\w+, "(\w+)"', text, re.M)


def undocumented(root):
    text = (root / "compiler/ir/IR.md").read_text()
    sections = dict(re.findall(r"^### `(\w+)`\n(.*?)(?=^##|\Z)", text, re.M | re.S))
    table = (root / "compiler/include/stele/ops.def").read_text()
    rows = re.findall(r'^OP\(\w+, "(\w+)", \w+, \w+, "[^"]*", "[^"]*", "([^"]*)"', table, re.M)
    for op, attributes in rows:
        if op not in sections:
            yield f"a section for {op} in IR.md"
        for name in re.findall(r"(\w+):", attributes):
            if not re.search(rf"`{name}`", sections.get(op, "")):
                yield f"{op}'s attribute {name} in IR.md"
    for name in re.findall(r'^ATTRIBUTE\("(\w+):', table, re.M):
        if f"`{name}`" not in text.split("## Levels")[0]:
            yield f"the common attribute {name} in IR.md"
    yield from (f"ops.def's row for {op}" for op in sections.keys() - dict(rows).keys())


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
    missing += undocumented(root)
    example = (folder / "example.mlir").read_text()
    if f"```mlir\n{example}```" not in (root / "compiler/ir/IR.md").read_text():
        missing.append("IR.md's example: it differs from example.mlir")
    found = list(messages(root))
    missing += [f"{name}: {text}" for name, text in found if not pattern(text).search(err)]
    for line in missing:
        print("missing:", line)
    print(f"{len(ops(root))} ops, {len(found)} messages, {len(missing)} missing")
    return 1 if missing or len(found) < 50 else 0


if __name__ == "__main__":
    sys.exit(main())
