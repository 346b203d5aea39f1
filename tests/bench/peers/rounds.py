"""Rounds in turns: all peers stand ready in processes of their own, all idle but the one that is
measured, and each round starts with another one, so that a machine whose speed drifts treats all
alike."""
import json
import os
import pathlib
import subprocess
import threading
import time

import table
from environments import HERE, Unavailable
from worker import load, some_ids


# Seconds: the most that a measurement is ahead of a shared machine's other programs at a time, and
# what these get after it.
LONGEST, REST = 10, 1.5


class Ahead:
    """Puts a process and those that it starts before every other of the machine, for one
    measurement. In bursts: only what fills a cache before it is measured takes longer than one."""

    def __init__(self, process, wanted):
        self.process, self.wanted, self.done = process, wanted, threading.Event()
        self.bursts = threading.Thread(target=self.alternate)

    def put(self, policy, priority, process=None):
        for thread in pathlib.Path(f"/proc/{process or self.process.pid}/task").glob("*"):
            try:
                os.sched_setscheduler(int(thread.name), policy, os.sched_param(priority))
                for child in (thread / "children").read_text().split():
                    self.put(policy, priority, child)
            except (ProcessLookupError, FileNotFoundError):
                pass  # it ended meanwhile

    def alternate(self):
        while not self.done.wait(LONGEST):
            self.put(os.SCHED_OTHER, 0)
            if self.done.wait(REST):
                break
            self.put(os.SCHED_FIFO, 10)

    def __enter__(self):
        if self.wanted:
            self.put(os.SCHED_FIFO, 10)
            self.bursts.start()

    def __exit__(self, *_):
        if self.wanted:
            self.done.set()
            self.bursts.join()
            self.put(os.SCHED_OTHER, 0)
            time.sleep(REST)


class Worker:
    """One setting of a peer, with a model loaded."""

    def __init__(self, peer, setting, model, path, python, threads, cache, variables):
        self.peer, self.setting, self.path, self.threads = peer, setting, path, threads
        self.row = table.PEERS[peer]
        several = len(self.row.settings) > 1
        self.name = f"{self.row.title}, {setting}" if several else self.row.title
        self.python, self.cache = python, pathlib.Path(cache)
        self.file = HERE / self.row.file
        self.variables = {**os.environ, "OMP_NUM_THREADS": str(threads), **variables}
        self.log = open(self.cache / f"{peer}.log", "a")
        self.arguments = [python, str(HERE / "worker.py"), str(self.file), path, str(threads),
                          setting]
        self.process = subprocess.Popen(self.arguments, stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, stderr=self.log, text=True,
                                        env=self.variables)
        self.version = self.read()["version"]
        self.starting = None

    def read(self):
        line = self.process.stdout.readline()
        if not line:
            self.process.wait()
            with open(self.log.name, errors="replace") as log:
                said = [text for text in log.read().splitlines() if text.strip()]
            raise Unavailable((said or ["it ended without a word"])[-1][:200])
        return json.loads(line)

    def ask(self, test, ahead):
        if test["test"] == "start":
            return self.start(ahead)
        with Ahead(self.process, ahead):
            self.process.stdin.write(json.dumps(test) + "\n")
            self.process.stdin.flush()
            answer = self.read()
        if "error" in answer:
            raise Unavailable(answer["error"][:200])
        return answer

    def start_command(self):
        maker = getattr(load(self.file), "first_command", None)
        if not maker:
            return [*self.arguments, "--first"]
        try:
            return maker(self.python, self.path, self.threads, some_ids(16), str(self.cache))
        except (OSError, subprocess.CalledProcessError) as error:
            raise Unavailable(f"no program to start: {error}") from None

    def start(self, ahead):
        """From the start of a process to the first thing it says, all files in memory."""
        self.starting = self.starting or self.start_command()
        first = ["chrt", "-f", "10"] if ahead else []
        begin = time.perf_counter()
        process = subprocess.Popen([*first, *self.starting], stdout=subprocess.PIPE,
                                   stderr=self.log, stdin=subprocess.DEVNULL, env=self.variables)
        said = process.stdout.read(1)
        seconds = time.perf_counter() - begin
        process.communicate()
        time.sleep(REST if ahead else 0)
        if not said or process.returncode != 0:
            raise Unavailable(f"the program to start ended with {process.returncode}")
        return {"seconds": seconds}

    def close(self):
        try:
            self.process.stdin.close()
            self.process.wait(timeout=20)
        except (OSError, subprocess.TimeoutExpired):
            self.process.kill()
            self.process.wait()
        self.process.stdout.close()
        self.log.close()


def in_turns(workers, test, rounds, ahead=False):
    """Rounds of one test; {worker's name: [answer, ...]} and {name: reason}.
    Ahead: before other programs of the machine."""
    answers, failed = {w.name: [] for w in workers}, {}
    for turn in range(-1, rounds):  # the first one warms up and doesn't count
        first = max(turn, 0) % len(workers)
        for worker in [*workers[first:], *workers[:first]]:
            if worker.name in failed:
                continue
            try:
                answer = worker.ask(test, ahead)
            except (Unavailable, OSError) as reason:
                failed[worker.name] = str(reason)
                continue
            if turn >= 0:
                answers[worker.name].append(answer)
    return {name: found for name, found in answers.items() if name not in failed}, failed
