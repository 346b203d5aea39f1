#!/usr/bin/env python3
"""Builds stele in every way that is supported and runs all tests.

  release    clang, warnings are errors, all tests
  sanitize   clang with AddressSanitizer and UndefinedBehaviorSanitizer
  runtime    gcc, without the compiler and without LLVM
  fuzz       every fuzz target for a minute
  readme     the commands that README.md shows

Give names to run only some of them. Times of the whole are printed before the result."""
import concurrent.futures
import json
import os
import pathlib
import re
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
FUZZ_SECONDS = 60
passed = failed = skipped = 0


def say(text):
    print(text, flush=True)


def count(good, name, detail=""):
    global passed, failed
    if good:
        passed += 1
    else:
        failed += 1
        say(f"FAILED {name} {detail}".rstrip())


def build(name, options, compiler, environment=None, targets=lambda folder: ()):
    """Configures once and builds targets (all) of build/NAME; False, and a failure is counted,
    when that fails. A warning counts as a failure too."""
    folder = ROOT / "build" / name
    variables = dict(os.environ, CC=compiler, **(environment or {}))
    if compiler.startswith("clang"):
        variables["CC_LD"] = "lld"  # linking MLIR's archives is most of a build's time
    output = ""
    if not (folder / "build.ninja").exists():
        code, output = run_step(["meson", "setup", str(folder), *options], variables)
        if code != 0:
            say(output[-6000:])
            count(False, f"configure {name}")
            return False
    code, output = run_step(["ninja", "-C", str(folder), *targets(folder)], variables)
    if code != 0:
        say("\n".join(l for l in output.splitlines() if not re.match(r"\[\d+/\d+\]", l))[-6000:])
    warnings = re.findall(r"\S+: warning:.*", output)
    count(code == 0 and not warnings, f"build {name}", "\n".join(warnings[:5]))
    return code == 0


def run_step(command, variables):
    done = subprocess.run(command, cwd=ROOT, env=variables, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, errors="replace")
    return done.returncode, done.stdout


def run_tests(name, arguments=(), environment=None):
    """Runs Meson's tests of build/NAME and adds each to the sums."""
    global skipped
    folder = ROOT / "build" / name
    log = folder / "meson-logs" / "testlog.json"
    log.unlink(missing_ok=True)
    subprocess.run(["meson", "test", "-C", str(folder), "--no-rebuild", "--print-errorlogs",
                    "--num-processes", str(os.cpu_count() or 1), *arguments],
                   cwd=ROOT, env=dict(os.environ, **(environment or {})))
    if not log.exists():
        count(False, f"tests of {name}", "did not run")
        return
    for line in log.read_text().splitlines():
        result = json.loads(line)
        if result["result"] == "SKIP":
            skipped += 1
            say(f"skipped: {name}: {result['name']}")
        else:
            count(result["result"] in ("OK", "EXPECTEDFAIL"), f"{name}: {result['name']}",
                  result["result"])


def part_release():
    if build("release", ["-Dwerror=true"], "clang-22"):
        run_tests("release")


def part_sanitize():
    suppressions = ROOT / "tests" / "leaks.txt"
    environment = {
        "ASAN_OPTIONS": "detect_leaks=1:abort_on_error=0:allocator_may_return_null=1",
        "LSAN_OPTIONS": f"suppressions={suppressions}:print_suppressions=0",
        "UBSAN_OPTIONS": "halt_on_error=1:print_stacktrace=1",
    }
    options = ["-Db_sanitize=address,undefined", "-Db_lundef=false", "-Dwerror=true",
               "-Dbuildtype=debugoptimized"]
    if build("sanitize", options, "clang-22", environment):
        # What is compiled for a model is not instrumented: one processor level will do.
        run_tests("sanitize", ["--timeout-multiplier", "4", "--no-suite", "slow", "--no-suite",
                               "rules", "--no-suite", "cts"], environment)
        run_tests("sanitize", ["--timeout-multiplier", "4", "cts-rows", "cts-ref",
                               "cts-cpu-portable"], environment)


def part_runtime():
    if build("runtime", ["-Dcompiler=disabled", "-Dwerror=true"], "gcc"):
        run_tests("runtime", ["--no-suite", "rules"])


def fuzz_one(folder, target):
    """A target for a minute, beginning with its kept inputs; new ones stay in the build folder."""
    name, kept = target.name.removeprefix("fuzz_"), ROOT / "tests" / "fuzz"
    corpus = folder / "corpus" / name
    corpus.mkdir(parents=True, exist_ok=True)
    command = [str(target), f"-max_total_time={FUZZ_SECONDS}", "-timeout=10", "-rss_limit_mb=2048",
               "-verbosity=0", "-print_final_stats=1", f"-artifact_prefix={folder}/crash-{name}-"]
    if (kept / "dict" / f"{name}.dict").exists():
        command.append(f"-dict={kept / 'dict' / name}.dict")
    command += [str(corpus), *(str(p) for p in [kept / "seeds" / name] if p.is_dir())]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          errors="replace")
    return name, done.returncode, done.stdout


def part_fuzz():
    options = ["-Dfuzz=true", "-Db_sanitize=address,undefined", "-Db_lundef=false",
               "-Dbuildtype=debugoptimized"]
    folder = ROOT / "build" / "fuzz"
    if not build("fuzz", options, "clang-22", targets=fuzz_targets):
        return
    targets = fuzz_targets(folder)
    count(bool(targets), "fuzz", "has no targets")
    with concurrent.futures.ThreadPoolExecutor(max(1, min(2, os.cpu_count() or 1))) as pool:
        for job in concurrent.futures.as_completed(
                [pool.submit(fuzz_one, folder, folder / t) for t in targets]):
            name, code, text = job.result()
            runs = re.findall(r"number_of_executed_units:\s*(\d+)", text)
            say(f"fuzz {name}: {runs[0] if runs else 'no'} runs")
            count(code == 0, f"fuzz {name}", text[-3000:] if code else "")


def fuzz_targets(folder):
    """What Ninja calls the fuzz targets."""
    done = subprocess.run(["ninja", "-C", str(folder), "-t", "targets", "all"], capture_output=True,
                          text=True)
    return sorted(set(re.findall(r"^(tests/fuzz/fuzz_\w+):", done.stdout, re.M)))


def readme_commands():
    """Lines of README.md's shell blocks, with a leading '$ ' dropped."""
    text = (ROOT / "README.md").read_text()
    for block in re.findall(r"```sh\n(.*?)```", text, re.S):
        for line in block.splitlines():
            line = line.strip().removeprefix("$ ")
            if line and not line.startswith("#"):
                yield line


def part_readme():
    for line in readme_commands():
        if line.split()[0] == "tools/check":
            continue  # that is this very run
        done = subprocess.run(["bash", "-euo", "pipefail", "-c", line], cwd=ROOT,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                              errors="replace")
        count(done.returncode == 0, f"README: {line}", done.stdout[-3000:])


PARTS = {"release": part_release, "sanitize": part_sanitize, "runtime": part_runtime,
         "fuzz": part_fuzz, "readme": part_readme}


def main():
    names = sys.argv[1:] or list(PARTS)
    unknown = [n for n in names if n not in PARTS]
    if unknown:
        say(f"check: unknown part '{unknown[0]}': expected some of {', '.join(PARTS)}")
        return 2
    times = []
    for name in names:
        say(f"== {name}")
        start = time.monotonic()
        PARTS[name]()
        times.append(f"{name} {time.monotonic() - start:.0f} s")
    say("times: " + ", ".join(times) + (f"; {skipped} skipped" if skipped else ""))
    say(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


sys.exit(main())
