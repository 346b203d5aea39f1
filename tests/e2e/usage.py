#!/usr/bin/env python3
"""Help, versions, documents and wrong use of every subcommand. Needs no model.

    usage.py --stele PATH
"""
import argparse
import pathlib
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
from harness import Checks, Stele  # noqa: E402

COMMANDS = ("compile", "run", "forward", "tokenize", "inspect", "bench", "doctor", "help")
WRONG = [
    (), ("frobnicate",), ("--frobnicate",),
    ("compile",), ("compile", "m"), ("compile", "m", "n", "-o", "x"),
    ("compile", "m", "-o", "x", "--lanes", "0"), ("compile", "m", "-o", "x", "--lanes", "17"),
    ("compile", "m", "-o", "x", "--max-cache-len", "0"),
    ("compile", "m", "-o", "x", "--max-cache-len", "-1"),
    ("compile", "m", "-o", "x", "--max-cache-len", "12k"),
    ("compile", "m", "-o", "x", "--max-cache-len", "99999999999"),
    ("compile", "m", "-o", "x", "--verify", "0"), ("compile", "m", "-o", "x", "--prefill", "0"), ("compile", "m", "-o"),
    ("run",), ("run", "x.so"), ("run", "x.so", "--prompt", "a", "--ids", "1"),
    ("run", "x.so", "--prompt", "a", "--max-new-tokens", "0"),
    ("run", "x.so", "--prompt", "a", "--max-new-tokens", "1.5"),
    ("run", "x.so", "--prompt", "a", "--threads", "0"),
    ("run", "x.so", "--prompt", "a", "--prompt-lookup-num-tokens", "0"),
    ("run", "x.so", "--prompt", "a", "--cache-implementation", "sliding"),
    ("run", "x.so", "--prompt"), ("run", "x.so", "y.so", "--prompt", "a"),
    ("forward", "x.so", "--ids", "1"), ("forward", "x.so", "-o", "f.npy"),
    ("forward", "x.so", "--ids", "1", "--all", "--hidden", "-o", "f.npy"),
    ("tokenize", "x.so"), ("tokenize", "--text", "a"), ("tokenize", "x", "--text", "a", "--json=no"),
    ("inspect",), ("inspect", "x", "y"), ("inspect", "x", "--families"), ("bench",), ("bench", "x.so", "-r", "0"),
    ("bench", "x.so", "-p", "0", "-n", "0"), ("compile", "--list", "--json"),
    ("doctor", "x", "y"), ("help", "frobnicate"), ("help", "--completion", "tcsh"),
]


def check_help(checks, stele):
    for arguments in (("--help",), ("help",)):
        done = stele.call(*arguments)
        checks.equal(done.returncode, 0, f"{arguments}")
        checks.that(all(c in done.stdout for c in COMMANDS), f"{arguments} lists all commands")
        checks.equal(done.stderr, "", f"{arguments}: standard error")
    for command in COMMANDS:
        done = stele.call(command, "--help")
        checks.that(done.returncode == 0 and "examples:" in done.stdout and
                    f"usage: stele {command}" in done.stdout, f"{command} --help teaches")
    done = stele.call("--version")
    checks.that(done.returncode == 0 and done.stdout.startswith("stele 0.1.0"), "--version")


def check_wrong_use(checks, stele, folder):
    for arguments in WRONG:
        done = stele.call(*arguments, cwd=folder)
        label = " ".join(arguments) or "no arguments"
        checks.equal(done.returncode, 2, f"'{label}': exit code")
        checks.equal(done.stdout, "", f"'{label}': standard output")
        if arguments:
            checks.equal(done.stderr.count("\n"), 1, f"'{label}': one line, {done.stderr!r}")
    checks.equal(list(folder.iterdir()), [], "wrong use leaves no files")


def check_missing(checks, stele, folder):
    for command, *rest in (("run", "--ids", "1"), ("forward", "--ids", "1", "-o", "f.npy"),
                           ("tokenize", "--text", "a"), ("inspect",), ("bench",), ("doctor",)):
        done = stele.call(command, "absent.so", *rest, cwd=folder)
        checks.equal(done.returncode, 1, f"{command} of an absent file: exit code")
        checks.that("'absent.so'" in done.stderr, f"{command} names the file: {done.stderr!r}")
    for name, content in (("empty.so", b""), ("text.so", b"no object at all\n" * 40)):
        (folder / name).write_bytes(content)
        for command, *rest in (("run", "--ids", "1"), ("inspect",), ("doctor",)):
            done = stele.call(command, name, *rest, cwd=folder)
            checks.that(done.returncode == 1 and f"'{name}'" in done.stderr,
                        f"{command} {name}: {done.returncode} {done.stderr!r}")


def check_documents(checks, stele, folder):
    """Completions that their shells accept; manual pages without complaints of the formatter."""
    for shell in ("bash", "zsh", "fish"):
        text = stele.call("help", "--completion", shell).stdout
        checks.that(all(c in text for c in COMMANDS) and "max-cache-len" in text, f"{shell} completion")
    script = folder / "complete.bash"
    script.write_text(stele.call("help", "--completion", "bash").stdout +
                      "COMP_WORDS=(stele run x --cache-implementation '') COMP_CWORD=4\n_stele\n"
                      "echo ${COMPREPLY[*]}\n"
                      "COMP_WORDS=(stele compile --max) COMP_CWORD=2\n_stele\necho ${COMPREPLY[*]}\n")
    done = subprocess.run(["bash", script], capture_output=True, text=True)
    checks.equal(done.stdout.split(), ["dynamic", "static", "--max-cache-len"],
                 f"bash completes: {done.stderr}")
    for command in COMMANDS:
        page = stele.call("help", "--man", command).stdout
        checks.that(page.startswith(".TH STELE-") and ".SH OPTIONS" in page and
                    ".SH EXAMPLES" in page, f"manual page of {command}")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--stele", required=True)
    stele = Stele(pathlib.Path(parser.parse_args().stele).resolve())
    checks = Checks()
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        check_help(checks, stele)
        check_wrong_use(checks, stele, folder)
        check_missing(checks, stele, folder)
        check_documents(checks, stele, folder)
    checks.finish()


main()
