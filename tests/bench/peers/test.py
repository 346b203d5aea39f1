#!/usr/bin/env python3
"""The parts of the comparison that need neither peers nor a network: statistics, tables, the
picture, README's block, and the writer of random models, which stele must be able to read.

    test.py STELE
"""
import math
import pathlib
import struct
import sys
import tempfile
import xml.etree.ElementTree

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parents[1])]

import picture  # noqa: E402
import report  # noqa: E402
import table  # noqa: E402
import write_random  # noqa: E402
from environments import Environments  # noqa: E402
from harness import Checks, Stele  # noqa: E402
from peers import FEATURES  # noqa: E402

DECODE = {"test": "decode", "prompt": 0, "tokens": 64}
DEEP = {"test": "decode", "prompt": 1024, "tokens": 64}
START = {"test": "start"}


def series(peer, name, test, values, **more):
    key = "seconds" if test["test"] == "start" else "tokens_per_s"
    return {"model": "m & <n>", "threads": 2, "test": test, "peer": peer, "title": peer.title(),
            "name": name, "bytes": 100_000_000, "answers": [{key: v, **more} for v in values]}


def some_results():
    own = {"read_gb_per_s": 20.0, "bytes_per_token": 100e6}
    return {
        "machine": "A <processor> & more", "features": ["avx2"], "threads_at_hand": 2, "load": 0.5,
        "level": None, "date": "2026-01-02", "rounds": 3, "ahead": False, "versions": {"stele": "1"},
        "series": [
            series("stele", "stele", DECODE, [150.0, 160.0, 170.0], **own),
            series("llama", "llama.cpp, on", DECODE, [50.0, 80.0, 170.0]),
            series("llama", "llama.cpp, off", DECODE, [40.0, 90.0, 85.0]),
            series("stele", "stele", DEEP, [100.0, 100.0, 100.0], **own),
            series("stele", "stele", START, [0.02, 0.03, 0.04]),
            series("llama", "llama.cpp, on", START, [0.2, 0.3, 0.4])],
        "absent": [{"what": "torch", "reason": "no wheel"}]}


def test_statistics(checks):
    results = some_results()
    ours, on, off, deep, start, their_start = results["series"]
    checks.equal(report.median(ours), 160.0, "median")
    checks.equal(report.ratios(ours, on), [3.0, 2.0, 1.0], "ratios of rounds")
    checks.that(all(math.isclose(r, 10) for r in report.ratios(start, their_start)),
                "less time is faster")
    checks.that(report.best([on, off]) is off, "the best setting has the higher median")
    checks.that(report.best([start, their_start]) is start, "the best start is the shorter one")
    checks.that(math.isclose(report.share(ours, ours), 0.8), "160 x 0.1 GB of 20 GB/s are 0.8")
    checks.that(math.isclose(report.share(on, ours), 0.4), "a peer's share is of its file's bytes")
    checks.equal(report.share(on, None), None, "without stele no bandwidth is known")
    checks.equal(report.title_of(DEEP), "decode at 1024", "title")


def test_texts(checks):
    results = some_results()
    full = report.full_text(results)
    checks.that("| llama.cpp, off | 85.0 (40.0 to 90.0), **2.00 ×**, 42% | – |" in full,
                f"a row with median, spread, ratio, share and what is missing:\n{full}")
    checks.that("- torch: no wheel" in full, "what is absent has its reason")
    made = report.block(results, "a.svg")
    readme = f"before\n{report.BEGIN}\nold\n{report.END}\nafter\n"
    once = report.put_block(readme, made)
    checks.equal(once, f"before\n{made}\nafter\n", "README's block")
    checks.equal(report.put_block(once, made), once, "writing it again changes nothing")
    try:
        report.put_block("no marks", made)
        checks.that(False, "a text without marks is refused")
    except ValueError:
        checks.that(True, "a text without marks is refused")


def test_picture(checks):
    results = some_results()
    tree = xml.etree.ElementTree.fromstring(picture.draw(results))
    bars = [e for e in tree.iter() if e.tag.endswith("}rect")]
    checks.equal([b.get("class") for b in bars], ["ours", "theirs", "ours"],
                 "a bar for the best of each peer and test, none for starts")
    checks.that(float(bars[0].get("width")) > float(bars[1].get("width")), "faster is longer")
    checks.that(all(0 <= float(b.get("x")) + float(b.get("width")) <= picture.WIDTH for b in bars),
                "bars are inside")


def test_table(checks):
    for name, peer in table.PEERS.items():
        checks.that((HERE / peer.file).is_file(), f"{name} has its file")
        checks.that(peer.environment in ("", *table.ENVIRONMENTS), f"{name} has its environment")
    checks.that(all(peer in table.PEERS for peer in table.CAN_BE_HELD), "levels name peers")
    for name, environment in table.ENVIRONMENTS.items():
        checks.that(not environment.after or (HERE / environment.after).is_file(), f"{name}: after")
    checks.that("stele" in table.PEERS, "stele is among them")


def test_levels(checks, stele):
    """A level is one that stele compiles for, and llama.cpp is another build at each."""
    help_text, builds = stele.good("compile", "--help").stdout, set()
    for name, level in table.LEVELS.items():
        checks.that(f" {name}," in help_text, f"stele knows {name}")
        checks.that(not level.needs or level.needs in FEATURES, f"{name} needs {level.needs}")
        builds.add(level.cmake)
        held = Environments(".", {"llama": "native", f"llama-{name}": name, "torch": "any"}, name)
        checks.equal(held.python("llama"), name, "the build that is given for a level")
        checks.equal(held.python("torch"), "any", "what isn't built is the same at every level")
    checks.equal(len(builds), len(table.LEVELS), "builds of llama.cpp")
    checks.equal(Environments(".", {"llama": "native"}).python("llama"), "native", "no level")


def test_random_model(checks, stele):
    blocks = write_random.q4_k(3, write_random.random.Random(1))
    checks.equal(len(blocks), 3 * 144, "bytes of three blocks of Q4_K")
    checks.equal([struct.unpack_from("<e", blocks, 144 * i)[0] for i in range(3)],
                 [struct.unpack("<e", write_random.half(7e-5))[0]] * 3, "scales are the set ones")
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "tiny.gguf"
        write_random.write(write_random.SHAPES["tiny"], path)
        found = stele.call("inspect", path)
        checks.that(found.returncode == 0 and "qwen2" in found.stdout,
                    f"stele reads a random model: {found.stderr}")


def main():
    checks = Checks()
    test_statistics(checks)
    test_texts(checks)
    test_picture(checks)
    test_table(checks)
    stele = Stele(sys.argv[1])
    test_levels(checks, stele)
    test_random_model(checks, stele)
    checks.finish()


main()
