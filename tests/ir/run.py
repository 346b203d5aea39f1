#!/usr/bin/env python3
"""Golden texts of the IR: run.py IR_TEXT_PROGRAM FOLDER [--update]

NAME.mlir is read, verified and printed. Beside it lies either NAME.out, the text that must come
out (and that comes out again when it is read in turn), or NAME.err, the messages. A first line
`// level: fused` says at which level; without it it's the model level. --update writes what came
out over the golden file, which must exist."""
import pathlib
import re
import subprocess
import sys


def run(program, level, path):
    done = subprocess.run([program, level, str(path)], capture_output=True, text=True)
    if done.returncode not in (0, 1):
        return None, f"exit code {done.returncode}\n{done.stderr}"
    return done.returncode, done.stdout if done.returncode == 0 else done.stderr


def check(program, path, update):
    first = path.read_text().split("\n", 1)[0]
    found = re.fullmatch(r"// level: (\w+)", first)
    level = found.group(1) if found else "model"
    golden = path.with_suffix(".out")
    if not golden.exists():
        golden = path.with_suffix(".err")
    code, text = run(program, level, path)
    if code != (0 if golden.suffix == ".out" else 1):
        return f"expected {'a module' if golden.suffix == '.out' else 'messages'}, got:\n{text}"
    if update:
        golden.write_text(text)
    if text != golden.read_text():
        return f"differs from {golden.name}:\n{text}"
    if golden.suffix == ".out" and run(program, level, golden) != (0, text):
        return f"{golden.name} does not come out as it went in"
    return None


def main():
    program, folder = sys.argv[1], pathlib.Path(sys.argv[2])
    update = "--update" in sys.argv[3:]
    failed = 0
    paths = sorted(folder.glob("*.mlir"))
    for path in paths:
        fault = check(program, path, update)
        failed += fault is not None
        if fault:
            print(f"{path.name}: {fault}")
    print(f"{len(paths) - failed} passed, {failed} failed")
    return 1 if failed or not paths else 0


if __name__ == "__main__":
    sys.exit(main())
