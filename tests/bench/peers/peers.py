#!/usr/bin/env python3
"""Speed beside other programs on the same model and threads, measured in rounds taken in turns.
Installs the peers from PyPI into the cache; one that can't be had, or can't run a model, is named
with its reason and the rest goes on. Never a pass or a fail.

    peers.py --stele build/tools/stele/stele             all of it (an hour and more)
    peers.py --stele build/tools/stele/stele --quick     one model, two rounds
    peers.py --stele build/tools/stele/stele --publish   all of it, and into README with a picture
    peers.py --report build/peers/results.json --publish the same of a run that was made before

Leaves results.json, table.md and speed.svg in the folder --out. table.py lists peers and models.
"""
import argparse
import datetime
import json
import os
import pathlib
import sys

import picture
import report
import table
from environments import Environments, Unavailable
from models import SOURCE_TREE, Models, size
from rounds import Worker, in_turns

FEATURES = ("avx2", "avx_vnni", "avx512f", "avx512_vnni", "avx512_bf16", "amx_int8", "amx_bf16")
PICTURE = "tests/bench/peers/speed.svg"


def say(text):
    print(text, file=sys.stderr, flush=True)


def processor():
    """Its name and all its features."""
    found = {}
    for line in pathlib.Path("/proc/cpuinfo").read_text().splitlines():
        key, _, value = line.partition(":")
        found.setdefault(key.strip(), value.strip())
    family = ", ".join(f"{key} {found[key]}" for key in ("cpu family", "model") if key in found)
    name = f"{found.get('model name', os.uname().machine)} ({family})"
    return name, found.get("flags", "").split()


def tests_of(arguments):
    tests = []
    for depth in arguments.depths:
        tests.append({"test": "decode", "prompt": depth, "tokens": arguments.tokens})
    if arguments.prompt:
        tests.append({"test": "prefill", "prompt": arguments.prompt})
    return [*tests, {"test": "start"}]


class Comparison:
    def __init__(self, arguments):
        self.arguments, self.cache = arguments, arguments.cache
        self.cache.mkdir(parents=True, exist_ok=True)
        machine, self.flags = processor()
        self.variables = {"STELE": str(arguments.stele),
                          **(table.LEVELS[arguments.cpu].variables if arguments.cpu else {})}
        os.environ["STELE"] = str(arguments.stele)  # for what starts it from here
        self.environments = Environments(self.cache, arguments.python, arguments.cpu, say)
        longest = max(arguments.depths) + max(arguments.prompt, arguments.tokens)
        capacity = (longest // 64 + 1) * 64
        self.models = Models(self.cache, self.environments, arguments.stele, capacity, say)
        self.results = {
            "machine": machine, "features": [f for f in FEATURES if f in self.flags],
            "threads_at_hand": len(os.sched_getaffinity(0)), "level": arguments.cpu,
            "date": datetime.date.today().isoformat(), "rounds": arguments.rounds,
            "ahead": arguments.ahead, "versions": {}, "series": [], "absent": []}

    def absent(self, what, reason):
        say(f"  {what}: {reason}")
        self.results["absent"].append({"what": what, "reason": str(reason)})

    def start(self, peer, setting, model, threads):
        """A worker that stands ready, or None with the reason noted."""
        row, title = table.PEERS[peer], table.MODELS[model].title
        what = f"{row.title}, {setting}, {title}"
        try:
            level = table.LEVELS.get(self.arguments.cpu)
            for need in filter(None, (row.needs.get(setting), level and level.needs)):
                if need not in self.flags:
                    raise Unavailable(f"the processor has no {need}")
            python = self.environments.python(row.environment)
            path = self.models.path(model, row.reads)
            worker = Worker(peer, setting, title, path, python, threads, self.cache, self.variables)
        except (Unavailable, OSError) as reason:
            self.absent(what, reason)
            return None
        self.results["versions"][row.title] = worker.version
        return worker

    def wanted(self, model):
        for peer in self.arguments.peers:
            row = table.PEERS[peer]
            if row.own_weights and not table.MODELS[model].everyone:
                continue
            if self.arguments.cpu and peer not in table.CAN_BE_HELD:
                continue
            for setting in row.settings:
                yield peer, setting

    def group(self, model, threads):
        """All tests of one model with one number of threads."""
        title = table.MODELS[model].title
        say(f"{title}, threads: {threads}")
        workers = [w for w in (self.start(peer, setting, model, threads)
                               for peer, setting in self.wanted(model)) if w]
        try:
            for test in tests_of(self.arguments):
                say(f"  {report.title_of(test)}")
                self.test(workers, test, title)
        finally:
            for worker in workers:
                worker.close()

    def test(self, workers, test, title):
        if not workers:
            return
        answers, failed = in_turns(workers, test, self.arguments.rounds,
                                   self.arguments.ahead)
        for worker in workers:
            where = {"model": title, "threads": worker.threads, "test": test}
            if worker.name in failed:
                self.absent(f"{worker.name}, {title}, {report.title_of(test)}", failed[worker.name])
            else:
                self.results["series"].append(
                    {**where, "peer": worker.peer, "title": worker.row.title, "name": worker.name,
                     "answers": answers[worker.name], "bytes": size(worker.path)})

    def run(self):
        for model in self.arguments.models:
            for threads in self.arguments.threads:
                self.group(model, threads)
                self.results["load"] = os.getloadavg()[0]
                save(self.results, self.arguments.out)
        return self.results


def save(results, out):
    """The three files; also after each group, so that a long run that is stopped leaves some."""
    out.mkdir(parents=True, exist_ok=True)
    (out / "results.json").write_text(json.dumps(results, indent=1) + "\n")
    if results["series"]:
        (out / "table.md").write_text(report.full_text(results))
        (out / "speed.svg").write_text(picture.draw(results))


def publish(results):
    (SOURCE_TREE / PICTURE).write_text(picture.draw(results))
    readme = SOURCE_TREE / "README.md"
    readme.write_text(report.put_block(readme.read_text(), report.block(results, PICTURE)))


def names_of(rows):
    def parse(text):
        names = text.split(",")
        for name in names:
            if name not in rows:
                raise argparse.ArgumentTypeError(f"'{name}', expected some of {', '.join(rows)}")
        return names
    return parse


def numbers(text):
    return [int(part) for part in text.split(",")]


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--stele", type=pathlib.Path, help="the program `stele`")
    parser.add_argument("--peers", type=names_of(table.PEERS), default=list(table.PEERS))
    parser.add_argument("--models", type=names_of(table.MODELS))
    parser.add_argument("--model", type=pathlib.Path, metavar="FILE.gguf", help="one of your own")
    parser.add_argument("-t", "--threads", type=numbers, help="1,2: a run for each")
    parser.add_argument("-r", "--rounds", type=int)
    parser.add_argument("-p", "--prompt", type=int, default=512, help="0: no prompt is measured")
    parser.add_argument("-n", "--tokens", type=int, help="tokens to decode")
    parser.add_argument("-d", "--depths", type=numbers, help="tokens in the cache before them")
    parser.add_argument("--quick", action="store_true", help="the first model, few rounds")
    parser.add_argument("--cpu", choices=table.LEVELS, help="hold those that can be to a level")
    parser.add_argument("--ahead", action="store_true",
                        help="measure at real-time priority: for a machine that others use too")
    parser.add_argument("--python", action="append", default=[], metavar="NAME=PATH",
                        help="an installed Python for one of: " + ", ".join(table.ENVIRONMENTS) +
                        "; NAME-LEVEL with --cpu, for what is built for a level")
    parser.add_argument("--cache", type=pathlib.Path, default=SOURCE_TREE / "build" / "peers",
                        help="where environments and models stay")
    parser.add_argument("--out", type=pathlib.Path, help="where the results go [the cache]")
    parser.add_argument("--report", type=pathlib.Path, metavar="RESULTS.json",
                        help="measure nothing, show these")
    parser.add_argument("--publish", action="store_true", help="write README's block and picture")
    arguments = parser.parse_args()
    if not arguments.stele and not arguments.report:
        parser.error("--stele is needed")
    return arguments


def complete(arguments):
    """What wasn't given: by --quick or not, and by the machine."""
    at_hand = len(os.sched_getaffinity(0))
    quick = {"models": ["smollm2-q4_1"], "threads": [at_hand], "rounds": 2, "tokens": 32,
             "depths": [0, 1024]}
    whole = {"models": list(table.MODELS), "threads": sorted({1, at_hand}), "rounds": 5,
             "tokens": 64, "depths": [0, 1024, 4096]}
    for name, value in (quick if arguments.quick else whole).items():
        if getattr(arguments, name) is None:
            setattr(arguments, name, value)
    if arguments.model:
        changed = int(arguments.model.stat().st_mtime)
        name = f"{arguments.model.stem}-{changed}"  # what is made of it is kept under this
        table.MODELS[name] = table.Model(arguments.model.stem, ("file", arguments.model.resolve()),
                                         True)
        arguments.models = [name]
    arguments.cache = arguments.cache.resolve()
    arguments.out = arguments.out or arguments.cache
    arguments.python = dict(pair.split("=", 1) for pair in arguments.python)
    if arguments.stele:
        arguments.stele = arguments.stele.resolve()
    return arguments


def main():
    arguments = complete(parse_arguments())
    if arguments.report:
        results = json.loads(arguments.report.read_text())
        save(results, arguments.out)
    else:
        results = Comparison(arguments).run()
    if not results["series"]:
        raise SystemExit("nothing could be measured")
    print(report.full_text(results), end="")
    if arguments.publish:
        publish(results)


if __name__ == "__main__":
    main()
