# SPDX-License-Identifier: Apache-2.0
"""A run as processes of this host, started one by one, for tests that stop, kill and replace them."""
import json
import os
import random
import re
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import harness

ROOT = Path(__file__).resolve().parents[2]
CONFIG = ROOT / "config" / "quickstart.toml"
STAGES = ("env-reader", "assembler", "scorer", "packer", "trainer")
# Of random events; more than the default are for a long look.
ROUNDS = int(os.environ.get("MILLRACE_CHAOS_ROUNDS", "0"))


def wait_until(condition, seconds, what, detail=lambda: ""):
    """The first true value of the condition."""
    until = time.monotonic() + seconds
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > until:
            raise AssertionError(f"not within {seconds} s: {what}\n{detail()}")
        time.sleep(0.01)


def free_socket(host):
    """Bound to a port that nobody has there."""
    out = socket.socket()
    out.bind((host, 0))
    return out


class Process:
    """One `millrace actor`. Its output is in a file of its own."""

    def __init__(self, name, log, words, env):
        self.name = name
        self.log = log
        with open(log, "wb") as out:
            # If the test is killed, its processes go, too.
            self.popen = subprocess.Popen(["setpriv", "--pdeathsig", "KILL", harness.program, *words],
                                          stdin=subprocess.DEVNULL, stdout=out, stderr=out, env=env)

    def text(self):
        return self.log.read_text(errors="replace")

    def lines(self):
        return self.text().splitlines()

    def ended(self):
        return self.popen.poll() is not None

    def kill(self):
        self.popen.kill()
        self.popen.wait()

    def send(self, number):
        self.popen.send_signal(number)

    def exit_code(self, seconds):
        try:
            return self.popen.wait(timeout=seconds)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"{self.name} has not ended within {seconds} s:\n{self.text()[-2000:]}") from None


class Cluster:
    """All processes of one run. `sets` hold for all of them."""

    def __init__(self, case, sets=(), name="run", timeout=1.0, directory="tcp://127.0.0.1:*", config=CONFIG):
        self.case = case
        self.config = config
        self.folder = case.dir / name
        self.folder.mkdir()
        self.sets = [f"link.timeout={timeout}", f"state={self.folder / 'state'}", *map(str, sets)]
        self.running = {}  # by name: the latest under it
        self.all = []
        self.json = self.folder / "summary.json"
        self.env = {**os.environ, "TMPDIR": str(self.folder)}
        self.number = 0
        self.endpoint = None
        case.addCleanup(self.kill_all)
        self.start_directory(directory)

    def start_directory(self, bind):
        """Bound, and its endpoint known."""
        file = self.folder / "directory.endpoint"
        file.unlink(missing_ok=True)
        process = self.spawn("directory", ["directory", "--endpoint-file", str(file)], [f"directory.endpoint={bind}"])
        wait_until(lambda: process.ended() or (file.exists() and file.read_text()), 20, "the directory is up")
        self.case.assertFalse(process.ended(), process.text())
        self.endpoint = file.read_text().strip()
        return process

    def spawn(self, name, words, sets=(), env=None):
        self.number += 1
        words = ["actor", *words, "--config", str(self.config)]
        for each in (*self.sets, *sets):
            words += ["--set", str(each)]
        process = Process(name, self.folder / f"{self.number:03}-{name}.log", words, {**self.env, **(env or {})})
        self.running[name] = process
        self.all.append(process)
        return process

    def start(self, role, number, *sets, env=None):
        """A stage or the planner."""
        words = [role]
        name = f"{role}-{number}"
        if role == "trainer":
            words += ["--rank", str(number)]
        elif role == "planner":
            words += ["--json", str(self.json)]
            name = role
        else:
            words += ["--name", str(number)]
        return self.spawn(name, words, [f"directory.endpoint={self.endpoint}", *sets], env)

    def start_all(self, **counts):
        """Roles with underscores, trainers and readers as the config says; then the planner."""
        for role in STAGES:
            for number in range(counts.get(role.replace("-", "_"), 2)):
                self.start(role, number)
        self.start("planner", 0)
        return self

    def tool(self, *words, check=True):
        done = subprocess.run([harness.program, *words, "--connect", self.endpoint], stdin=subprocess.DEVNULL,
                              capture_output=True, text=True, timeout=30, check=False)
        if check:
            self.case.assertEqual(done.returncode, 0, done.stderr)
        return done

    def status(self):
        """By process; empty if the directory does not answer."""
        done = self.tool("status", "--json", check=False)
        return {one["process"]: one for one in json.loads(done.stdout)["processes"]} if done.returncode == 0 else {}

    def drain(self, name):
        self.tool("drain", name)

    def planner_steps(self):
        return len(re.findall(r"^step \d+:", self.running["planner"].text(), re.M))

    def wait_for_step(self, step, seconds=60):
        planner = self.running["planner"]
        wait_until(lambda: self.planner_steps() >= step or planner.ended(), seconds, f"step {step}", self.story)
        self.case.assertGreaterEqual(self.planner_steps(), step, self.story())

    def summary(self, seconds=90):
        """Of a run that ends well; all that still runs ends well, too."""
        planner = self.running["planner"]
        wait_until(planner.ended, seconds, "the planner ends", self.story)
        self.case.assertEqual(planner.popen.returncode, 0, self.story())
        for process in self.running.values():
            if process.popen.returncode != -signal.SIGKILL:
                self.case.assertEqual(process.exit_code(15), 0, self.story())
        return json.loads(self.json.read_text())

    def kill_all(self):
        for process in self.all:
            if not process.ended():
                process.kill()

    def story(self):
        """What everybody said, for a failed test."""
        told = []
        for process in self.all:
            told.append(f"--- {process.log.name}: {process.popen.poll()}")
            told += process.lines()[-12:]
        return "\n".join(told)


class Case(harness.Case):
    def setUp(self):
        super().setUp()
        seed = int(os.environ.get("MILLRACE_CHAOS_SEED", "0")) or random.SystemRandom().randrange(1, 2**32)
        self.random = random.Random(seed)
        print(f"seed {seed} ", end="", file=sys.stderr, flush=True)

    def in_one_process(self, *sets):
        """The summary that every way to run it must repeat."""
        out = self.dir / "one.json"
        words = [word for each in sets for word in ("--set", each)]
        done = self.run_millrace("run", CONFIG, "--json", out, *words)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        return json.loads(out.read_text())

    def assert_same(self, many, one):
        self.assertTrue(many["balanced"])
        for key in ("grid_hash", "ledger", "episodes", "steps", "micro_batches", "sample_tokens"):
            self.assertEqual(many[key], one[key], key)
