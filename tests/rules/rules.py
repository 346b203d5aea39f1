#!/usr/bin/env python3
"""Rules of the house that a machine can check.

    rules.py layers              includes follow the arrows of CONTRIBUTING.md
    rules.py headers CC...       every header compiles on its own
    rules.py words               no leftovers: marks of unfinished work, paths of a machine
    rules.py paths               files that the documents name exist
    rules.py format CLANG-FORMAT all C is laid out by .clang-format
    rules.py symbols LIB LIST    a library exports what the list says, no more, no less
"""
import pathlib
import re
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
SKIP = 77
SOURCE_FOLDERS = ("runtime", "compiler", "passes", "targets", "tools", "tests")
INCLUDE_FOLDERS = ("runtime/include", "runtime", "compiler/include", "compiler", "targets",
                   "tools/stele", "tests", "tests/support")

# What a folder may include beside itself; the first row that a file's path begins with counts.
# An entry that ends with a slash is a folder and all below it, else a file; a star stands for
# anything but a slash.
SHARED = ["runtime/include/stele/status.h", "runtime/include/stele/status.def",
          "runtime/include/stele/artifact.h", "runtime/base/"]
COMPILER = ["compiler/include/", "compiler/frontend/", "compiler/weights/", "compiler/ir/"]
TARGET = SHARED + ["compiler/include/", "compiler/weights/weights.h", "compiler/artifact/llvm.h",
                   "targets/*.h", "targets/*.def"]
ALLOWED = [
    ("runtime/include/", []),
    ("runtime/base/", ["runtime/include/"]),
    ("runtime/text/", SHARED),
    ("runtime/", ["runtime/"]),
    ("compiler/include/", ["runtime/include/", "compiler/ir/ir.h"]),
    ("compiler/weights/", SHARED),
    ("compiler/frontend/", SHARED + ["runtime/text/tokenizer.h", "compiler/weights/",
                                     "compiler/include/stele/program.h",
                                     "compiler/include/stele/ops.def"]),
    ("compiler/ir/", SHARED + ["compiler/include/", "compiler/frontend/", "compiler/weights/"]),
    ("compiler/", SHARED + ["compiler/"]),
    ("passes/", SHARED + COMPILER),
    ("targets/ref/", TARGET),
    ("targets/null/", TARGET),
    ("targets/cpu/", TARGET),
    ("targets/", TARGET),
    ("tools/", ["runtime/", "compiler/", "passes/", "targets/"]),
    ("tests/", ["runtime/", "compiler/", "passes/", "targets/", "tools/"]),
]


def sources(*endings):
    for folder in SOURCE_FOLDERS:
        for path in sorted((ROOT / folder).rglob("*")):
            if path.suffix in endings and path.is_file():
                yield path


def relative(path):
    return path.relative_to(ROOT).as_posix()


def resolve(name, beside):
    """The file of this tree that an include names, or None."""
    for folder in [beside, *(ROOT / f for f in INCLUDE_FOLDERS)]:
        path = (folder / name).resolve()
        if path.is_file() and path.is_relative_to(ROOT):
            return path
    return None


def matches(pattern, target):
    if pattern.endswith("/"):
        return target.startswith(pattern)
    return re.fullmatch(re.escape(pattern).replace(r"\*", "[^/]*"), target) is not None


def edge_allowed(source, target):
    for prefix, allowed in ALLOWED:
        if source.startswith(prefix):
            return target.startswith(prefix) or any(matches(a, target) for a in allowed)
    return False


def check_layers():
    include = re.compile(r'^\s*#\s*include\s+"([^"]+)"', re.M)
    for path in sources(".c", ".h"):
        for name in include.findall(path.read_text()):
            target = resolve(name, path.parent)
            # What isn't in the tree is a system's header or made by the build.
            if target and not edge_allowed(relative(path), relative(target)):
                yield f"{relative(path)} includes {relative(target)}: not along the arrows"


def check_headers(*compiler):
    flags = ["-std=gnu17", "-D_GNU_SOURCE", "-fsyntax-only", "-Wall", "-Wextra", "-Werror", "-x",
             "c", "-isystem", "/usr/lib/llvm-22/include"]
    flags += [f"-I{ROOT / f}" for f in INCLUDE_FOLDERS]
    for path in sources(".h"):
        if "kernels" in path.parts:
            continue  # only clang compiles these, for a processor that is named
        unit = f'#include "{path}"\ntypedef int rules_not_empty;\n'
        done = subprocess.run([*compiler, *flags, f"-I{path.parent}", "-"], input=unit, text=True,
                              capture_output=True)
        if done.returncode != 0:
            yield f"{relative(path)} does not compile alone:\n{done.stderr[:1500]}"


def check_words():
    words = re.compile(r"\b(TODO|FIXME|XXX|HACK)\b|/(work|root|home)/\w|\.\./shared")
    this = pathlib.Path(__file__).resolve()
    documents = [p for p in ROOT.glob("*.md")] + [ROOT / "meson.build"]
    for path in [*sources(".c", ".h", ".def", ".py", ".md", ".build", ".txt", ""), *documents]:
        if path == this or "seeds" in path.parts:
            continue
        try:
            text = path.read_text()
        except UnicodeDecodeError:
            continue
        for number, line in enumerate(text.splitlines(), 1):
            if words.search(line):
                yield f"{relative(path)}:{number}: {line.strip()[:100]}"


def check_paths():
    """Paths between backticks in the documents; a star or a placeholder in capitals is no path."""
    quoted = re.compile(r"`([a-z.][\w./-]*/[\w./-]*)`")
    for document in [*ROOT.glob("*.md"), *(p for p in sources(".md"))]:
        for name in quoted.findall(document.read_text()):
            places = [document.parent, ROOT, *(ROOT / f for f in INCLUDE_FOLDERS)]
            if not name.startswith("build") and not any((p / name).exists() for p in places):
                yield f"{relative(document)} names '{name}', which does not exist"


def check_format(program):
    if not shutil.which(program):
        print(f"{program} is not installed")
        sys.exit(SKIP)
    files = [str(p) for p in sources(".c", ".h")]
    done = subprocess.run([program, "--dry-run", "-Werror", *files], cwd=ROOT,
                          capture_output=True, text=True)
    for name in sorted(set(re.findall(r"^(\S+?):\d+:\d+: error", done.stderr, re.M))):
        yield f"{name} is not laid out by {program}"


def check_symbols(library, listing):
    done = subprocess.run(["nm", "-D", "--defined-only", library], capture_output=True, text=True,
                          check=True)
    found = {line.split()[-1].split("@")[0] for line in done.stdout.splitlines()}
    found -= {"_init", "_fini"}
    # A sanitizer adds its own.
    found = {s for s in found if not re.match(r"_*(asan|ubsan|lsan|sanitizer)", s)}
    expected = set((ROOT / listing).read_text().split())
    for name in sorted(found - expected):
        yield f"{library} exports '{name}', which {listing} does not list"
    for name in sorted(expected - found):
        yield f"{library} does not export '{name}', which {listing} lists"


def main():
    checks = {name[6:]: f for name, f in globals().items() if name.startswith("check_")}
    if len(sys.argv) < 2 or sys.argv[1] not in checks:
        print(__doc__)
        sys.exit(2)
    faults = list(checks[sys.argv[1]](*sys.argv[2:]))
    print("\n".join(faults) if faults else f"{sys.argv[1]}: as it should be")
    sys.exit(1 if faults else 0)


main()
