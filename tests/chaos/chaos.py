#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A bad day: processes of a run are killed, stopped, restarted, added, drained, cut off; a second planner comes.

    chaos.py MILLRACE MINUTES SEED     (tests/chaos/run.sh)

Rounds of one recording each, until the minutes are over. Whoever dies is started again. A round is good if the planner
ends with 0, the ledger balances, all is as in an undisturbed run, and the planner's log has every group once. In every
second round assemblers keep journals.
"""
import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "integration"))
# pylint: disable=wrong-import-position
import cluster  # noqa: E402
import harness  # noqa: E402
from planner_log import PlannerLog  # noqa: E402
from proxy import Proxy  # noqa: E402

COUNTS = {"env-reader": 2, "assembler": 3, "scorer": 3, "packer": 2, "trainer": 4}
ELASTIC = ("assembler", "scorer", "packer")
MOST_OF_A_ROLE = 5
NO_PROGRESS_S = 120
PATIENCE_S = 20  # after so long without progress it is left alone: a hang must not be helped by the next kill
ROUND_S = 1200
NEW_DIRECTORY_S = 5  # one that was just started may take in the wrong planner (docs/recovery.md, "Not covered")
GROUPS_PER_S = 10
GROUPS_OF_SCALE_1 = 66
SAME = ("grid_hash", "ledger", "episodes", "groups", "tokens", "steps", "samples", "sample_tokens", "micro_batches")
# How often, relative to each other. MILLRACE_CHAOS_EVENTS="KIND,KIND" leaves only those.
EVENTS = {"kill": 30, "kill two": 8, "kill all": 2, "stop": 16, "polite restart": 8, "add": 6, "drain": 6, "cut": 14,
          "silence": 4, "second planner, same folder": 3, "second planner, other folder": 3}

if "MILLRACE_CHAOS_EVENTS" in os.environ:
    EVENTS = {kind: EVENTS[kind] for kind in os.environ["MILLRACE_CHAOS_EVENTS"].split(",")}


class Failure(Exception):
    """Of a round."""


class System(cluster.Cluster):
    """All processes are reached through proxies, at 127.0.0.2."""

    def __init__(self, case, sets, name):
        self.proxies = {}  # by process
        super().__init__(case, sets, name=name, timeout=2)
        self.direct = self.endpoint
        case.addCleanup(lambda: [each.close() for each in self.proxies.values()])
        self.endpoint = self.through_proxy("directory", int(self.direct.rsplit(":", 1)[1]))

    def through_proxy(self, name, port):
        self.proxies[name] = Proxy(("127.0.0.2", port), ("127.0.0.1", port))
        return f"tcp://127.0.0.2:{port}"

    def port_of(self, name):
        """One that is free at both addresses; the same for all starts of a process."""
        if name not in self.proxies:
            while True:
                with cluster.free_socket("127.0.0.1") as free:
                    port = free.getsockname()[1]
                try:
                    self.through_proxy(name, port)
                    break
                except OSError:
                    continue
        return self.proxies[name].address[1]

    def start(self, role, number, *sets):
        name = role if role == "planner" else f"{role}-{number}"
        return super().start(role, number, f"link.bind=tcp://127.0.0.1:{self.port_of(name)}",
                             "link.advertise=127.0.0.2", *sets)

    def start_by_name(self, name):
        if name == "directory":
            return self.spawn(name, ["directory", "--endpoint-file", str(self.folder / "directory.endpoint")],
                              [f"directory.endpoint={self.direct}"])
        if name == "planner":
            return self.start("planner", 0)
        role, number = name.rsplit("-", 1)
        return self.start(role, int(number))

    def log(self):
        """None before there is one."""
        path = self.folder / "state" / "planner.log"
        return PlannerLog(path) if path.exists() and path.stat().st_size > 64 else None


class Round:
    """One recording, from the first process to the verdict."""

    def __init__(self, system, rng, say):
        self.system = system
        self.random = rng
        self.say = say
        self.events = Counter()
        self.restarts = Counter()  # by how it had ended
        self.wanted = set()        # names that are to be there
        self.due = {}              # by name: when it is started again
        self.stopped = {}          # by name: when it goes on
        self.leaving = {}          # by name: whether it comes again
        self.highest = COUNTS.copy()  # by role: the number of the next one
        self.progress = (0, time.monotonic())
        self.left_alone = False
        self.directory_since = time.monotonic()

    # ---- who is there

    def process(self, name):
        return self.system.running[name]

    def alive(self, *roles):
        """Names, of those roles if there are any. Who is about to leave is alive, too."""
        return [name for name in sorted(self.wanted | set(self.leaving))
                if not self.process(name).ended() and (not roles or name.rsplit("-", 1)[0] in roles)]

    def launch(self, name):
        self.wanted.add(name)
        self.system.start_by_name(name)

    def start(self):
        self.wanted.add("directory")
        for role, count in COUNTS.items():
            for number in range(count):
                self.launch(f"{role}-{number}")
        self.launch("planner")

    # ---- what happens by itself

    def tend(self):
        """Notes who has ended, and starts again who is due."""
        now = time.monotonic()
        for name in [name for name, when in self.stopped.items() if now >= when]:
            self.go_on(name)
        for name in list(self.leaving):
            self.look_whether_it_left(name)
        for name in sorted(self.wanted - set(self.due)):
            if self.process(name).ended():
                self.note_end(name)
        for name in [name for name, when in self.due.items() if now >= when]:
            del self.due[name]
            self.launch(name)
            if name == "directory":
                self.directory_since = time.monotonic()
            if name == "planner":
                self.bring_back_the_others()

    def go_on(self, name):
        del self.stopped[name]
        if not self.process(name).ended():
            self.process(name).send(signal.SIGCONT)

    def look_whether_it_left(self, name):
        if not self.process(name).ended():
            return
        comes_again = self.leaving.pop(name)
        code = self.process(name).popen.returncode
        if code not in (0, 1, 75, -signal.SIGKILL):
            raise Failure(f"{name} ended with {code} when it was to leave")
        if comes_again:
            self.wanted.add(name)
            self.due[name] = time.monotonic() + self.random.uniform(0.05, 1)

    def note_end(self, name):
        code = self.process(name).popen.returncode
        if code == 0:  # the end of the run, or of its planner: is judged there
            return
        if code not in (1, 75, -signal.SIGKILL):
            raise Failure(f"{name} ended with {code}:\n{self.process(name).text()[-2000:]}")
        if name == "planner" and code == 1 and self.has_ended_well("trainer"):
            raise Failure(f"the planner ended with 1:\n{self.process(name).text()[-3000:]}")
        if code > 0:
            self.restarts[f"{name.rsplit('-', 1)[0]} ended with {code}"] += 1
            last = (self.process(name).lines() or ["nothing"])[-1]
            self.say(f"  {name} ended with {code}: {last[:300]}")
        self.due[name] = time.monotonic() + self.random.uniform(0.05, 1.5)

    def has_ended_well(self, role):
        """Only the end of a run lets readers and trainers end so."""
        return all(self.process(f"{role}-{i}").popen.poll() == 0 for i in range(COUNTS[role]))

    def bring_back_the_others(self):
        """The planner was lost when it had told the others to end; it must bring that about again."""
        if not self.has_ended_well("trainer") and not self.has_ended_well("env-reader"):
            return
        self.events["the planner was lost at the very end"] += 1
        for name in sorted(self.wanted - set(self.due)):
            if self.process(name).popen.poll() == 0:
                self.launch(name)

    def look_at_progress(self):
        log = self.system.log()
        state = (len(log.commits), log.trained, log.durable, len(log.rolled_back)) if log else 0
        if state != self.progress[0]:
            if self.left_alone:
                self.say(f"  goes on after {time.monotonic() - self.progress[1]:.0f} s without progress")
            self.left_alone = False
            self.progress = (state, time.monotonic())
        elif time.monotonic() - self.progress[1] > NO_PROGRESS_S:
            raise Failure(f"no progress for {NO_PROGRESS_S} s after (committed, trained, durable, rolled back) {state}")
        elif time.monotonic() - self.progress[1] > PATIENCE_S and not self.left_alone:
            self.left_alone = True
            self.events["left alone, without progress"] += 1
            self.say(f"  no progress for {PATIENCE_S} s: is left alone")

    # ---- what we do

    def kill(self, names):
        for name in names:
            self.process(name).kill()
        self.say(f"kill {' '.join(names)}")

    def event(self):
        kind = self.random.choices(list(EVENTS), list(EVENTS.values()))[0]
        name = kind.replace(" ", "_").replace(",", "")
        if getattr(self, "do_" + name)():
            self.events[kind] += 1

    def do_kill(self):
        alive = self.alive()
        if alive:
            self.kill([self.random.choice(alive)])
        return alive

    def do_kill_two(self):
        alive = self.alive()
        if len(alive) < 2:
            return False
        self.kill(self.random.sample(alive, 2))
        return True

    def do_kill_all(self):
        alive = self.alive()
        self.kill(alive)
        return alive

    def do_stop(self):
        names = [name for name in self.alive() if name not in self.stopped]
        if not names:
            return False
        name, seconds = self.random.choice(names), self.random.uniform(0.5, 6)
        self.process(name).send(signal.SIGSTOP)
        self.stopped[name] = time.monotonic() + seconds
        self.say(f"stop {name} for {seconds:.1f} s")
        return True

    def who_may_leave(self, least):
        """Of roles with more than `least`."""
        names = [name for name in self.alive(*ELASTIC) if name in self.wanted and name not in self.stopped]
        roles = Counter(name.rsplit("-", 1)[0] for name in names)
        return [name for name in names if roles[name.rsplit("-", 1)[0]] > least]

    def do_polite_restart(self):
        names = self.who_may_leave(1)
        if not names:
            return False
        name = self.random.choice(names)
        self.process(name).send(signal.SIGTERM)
        self.wanted.discard(name)
        self.leaving[name] = True
        self.say(f"SIGTERM to {name}, which comes again")
        return True

    def do_add(self):
        roles = [role for role in ELASTIC
                 if len([name for name in self.wanted if name.startswith(role)]) < MOST_OF_A_ROLE]
        if not roles:
            return False
        role = self.random.choice(roles)
        name = f"{role}-{self.highest[role]}"
        self.highest[role] += 1
        self.launch(name)
        self.say(f"add {name}")
        return True

    def do_drain(self):
        names = self.who_may_leave(2)
        if not names:
            return False
        name = self.random.choice(names)
        done = self.system.tool("drain", name, "--wait", "3", check=False)
        if done.returncode != 0:  # the directory is not there, or does not know it
            self.say(f"drain {name}: {done.stderr.strip()}")
            return False
        self.wanted.discard(name)
        self.leaving[name] = False
        self.say(f"drain {name}")
        return True

    def do_cut(self, silent=False):
        name = self.random.choice(sorted(self.system.proxies))
        most = 10 ** self.random.uniform(0, 6)
        # The proxy's thread calls it: from a generator of its own.
        rng = random.Random(self.random.getrandbits(64))
        self.system.proxies[name].cut_within(lambda: rng.randrange(int(most) + 1), silent)
        self.say(f"{'silence' if silent else 'cut'} links to {name} within {int(most):,} bytes")
        return True

    def do_silence(self):
        return self.do_cut(silent=True)

    def second_planner(self, folder, codes, pattern):
        """It must be refused, and the first one must not mind."""
        first = self.process("planner")
        if first.ended() or "planner" in self.stopped or not re.search(r"^step ", first.text(), re.M):
            return False
        self.say(f"a second planner on {folder}")
        second = self.system.spawn("second-planner", ["planner"], [
            f"directory.endpoint={self.system.endpoint}", "link.bind=tcp://127.0.0.1:*", f"state={folder}"])
        self.tend_until(lambda: second.ended() or first.ended(), 60, "the second planner ends")
        if first.ended():
            second.kill()
            code = first.popen.returncode
            if code in (0, 75):  # the end of the run; or it was taken for lost before
                return False
            raise Failure(f"the first planner ended with {code} when a second one came:\n{first.text()[-2000:]}")
        code, text = second.popen.returncode, second.text()
        if code not in codes or not re.search(pattern, text):
            raise Failure(f"the second planner ended with {code}; {codes} and '{pattern}' are wanted:\n{text[-2000:]}")
        self.say(f"  it ended with {code}: {second.lines()[-1]}")
        return True

    def do_second_planner_same_folder(self):
        return self.second_planner(self.system.folder / "state", (1, 2), "(?i)lock|in use")

    def do_second_planner_other_folder(self):
        if time.monotonic() - self.directory_since < NEW_DIRECTORY_S:
            return False
        other = self.system.folder / f"state-{self.events['second planner, other folder']}"
        return self.second_planner(other, (1,), "another .*leads this run")

    # ---- from the start to the end

    def tend_until(self, condition, seconds, what):
        until = time.monotonic() + seconds
        while not condition():
            if time.monotonic() > until:
                raise Failure(f"not within {seconds} s: {what}")
            self.tend()
            time.sleep(0.02)

    def planner_is_done(self):
        return self.process("planner").popen.poll() == 0 and "planner" not in self.due

    def run(self):
        self.start()
        begun = time.monotonic()
        next_event = begun + self.random.uniform(1, 4)
        next_look = begun
        while not self.planner_is_done():
            now = time.monotonic()
            if now - begun > ROUND_S:
                raise Failure(f"the round has not ended within {ROUND_S} s")
            self.tend()
            if now >= next_look:
                self.look_at_progress()
                next_look = now + 1
            if now >= next_event and not self.left_alone and not self.planner_is_done():
                self.event()
                next_event = time.monotonic() + self.random.uniform(1, 5)
            time.sleep(0.02)
        self.end_the_others()

    def end_the_others(self):
        for name in list(self.stopped):
            self.go_on(name)
        ended = time.monotonic()
        # Who was stopped or started when the planner ended waits for recovery.wait that it comes again.
        for seconds, number in ((20, signal.SIGTERM), (20, signal.SIGTERM), (90, None)):
            left = [each for each in self.system.all if not each.ended()]
            while left and time.monotonic() < ended + seconds:
                time.sleep(0.05)
                left = [each for each in left if not each.ended()]
            if left and number is None:
                raise Failure("these do not end after the planner: " + ", ".join(each.name for each in left))
            for each in left:
                self.events["had to be told to end"] += 1
                each.send(number)
            ended = time.monotonic()

    def judge(self, one):
        """Against the undisturbed run."""
        summary = json.loads(self.system.json.read_text())
        wrong = [f"{key} is {summary.get(key)}, {one.get(key)} undisturbed" for key in SAME
                 if summary.get(key) != one.get(key)]
        if not summary["balanced"]:
            wrong.append("the ledger does not balance")
        log = self.system.log()
        if log is None:
            raise Failure("there is no planner.log")
        wrong += log.problems()
        of_log = log.ledger()
        wrong += [f"{state}: {of_log[state]} in the log, {count} in the ledger"
                  for state, count in summary["ledger"].items() if state != "held" and of_log[state] != count]
        inspected = subprocess.run([harness.program, "inspect", self.system.folder / "state" / "planner.log", "--json"],
                                   stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60, check=False)
        if inspected.returncode != 0:
            wrong.append(f"inspect: {inspected.stderr}")
        if wrong:
            raise Failure("; ".join(wrong))
        return summary, log


class Chaos:
    """All rounds."""

    def __init__(self, minutes, seed):
        self.minutes = minutes
        self.seed = seed
        self.begun = time.monotonic()
        self.folder = Path(tempfile.mkdtemp(prefix="millrace-chaos-"))
        self.events, self.restarts, self.sums = Counter(), Counter(), Counter()

    def say(self, line):
        print(f"{time.monotonic() - self.begun:8.1f} s  {line}", flush=True)

    def run(self):
        """The exit code."""
        print(f"seed {self.seed}, {self.minutes:g} minutes, logs in {self.folder}", flush=True)
        number = 0
        while number == 0 or time.monotonic() - self.begun < self.minutes * 60:
            number += 1
            if not self.round(number):
                print(f"chaos: FAILED in round {number}; seed {self.seed}; all logs are in {self.folder}", flush=True)
                return 1
        shutil.rmtree(self.folder)
        for title, counts in (("events", self.events), ("ends by themselves", self.restarts), ("sums", self.sums)):
            print(f"{title}: " + (", ".join(f"{name} {count}" for name, count in sorted(counts.items())) or "none"))
        print(f"chaos: passed, {number} rounds, {sum(self.events.values())} events, seed {self.seed}", flush=True)
        return 0

    def round(self, number):
        rng = random.Random(f"{self.seed}:{number}")
        # The first one ends with the minutes of a short run.
        seconds = min(rng.uniform(40, 60), max(10, self.minutes * 60))
        case = harness.Case()
        case.dir = self.folder / f"round-{number}"
        case.dir.mkdir()
        now = None
        try:
            sets = self.prepare(case, rng, seconds)
            journal = number % 2 == 0  # every second round
            one = self.undisturbed(case, sets)
            system = System(case, [*sets, f"source.pace={GROUPS_PER_S}", "trainer.checkpoint_every=5",
                                   "steps.keep=durable", "recovery.wait=60", "trainer.timeout=10",
                                   "env_reader.instances=2", f"assembler.journal={str(journal).lower()}"], "run")
            now = Round(system, rng, self.say)
            self.say(f"round {number}: {one['groups']} groups, {one['steps']} steps, about {seconds:.0f} s"
                     f"{', with journals' if journal else ''}")
            now.run()
            summary, log = now.judge(one)
        except (Failure, AssertionError, ValueError, OSError, subprocess.TimeoutExpired) as why:
            self.say(f"FAILED: {why}")
            if now is not None:
                self.tell_all(now)
            return False
        finally:
            case.doCleanups()
        self.say(f"round {number} is good: {summary['steps']} steps, {len(log.opens)} starts of the planner, "
                 f"{len(log.generations)} trainer jobs, {len(system.all)} starts of processes, {summary['grid_hash']}")
        self.events += now.events
        self.restarts += now.restarts
        self.sums += Counter({"steps": summary["steps"], "starts of the planner": len(log.opens),
                              "trainer jobs": len(log.generations), "starts of processes": len(system.all),
                              "cuts": sum(each.cuts for each in system.proxies.values())})
        shutil.rmtree(case.dir)
        return True

    def prepare(self, case, rng, seconds):
        """A recording of that many seconds, and the settings for it."""
        scale = seconds * GROUPS_PER_S / GROUPS_OF_SCALE_1
        path = case.synth("chaos.mrec", f"{scale:.2f}", "--seed", str(rng.randrange(1, 10**6)))
        return [f"source.path={path}", "deterministic=true", f"batch.traces={rng.choice((30, 50, 70))}",
                f"trainer.ranks={COUNTS['trainer']}"]

    def undisturbed(self, case, sets):
        out = case.dir / "one.json"
        words = [word for each in sets for word in ("--set", each)]
        done = case.run_millrace("run", cluster.CONFIG, "--json", out, *words)
        if done.returncode != 0:
            raise Failure(f"the undisturbed run failed: {done.stdout}{done.stderr}")
        return json.loads(out.read_text())

    def tell_all(self, now):
        """What a person needs who was not there."""
        for words in (("why",), ("status",)):
            try:
                done = now.system.tool(*words, check=False)
                print(f"--- millrace {words[0]}\n{done.stdout}{done.stderr}")
            except subprocess.TimeoutExpired:
                print(f"--- millrace {words[0]}: no answer")
        starts = {}
        for process in now.system.all:
            starts.setdefault(process.name, []).append(process)
        for name in sorted(starts):
            for process in starts[name][-3:]:
                print(f"--- {process.log.name}: {process.popen.poll()}")
                print("\n".join(line[:500] for line in process.lines()[-15:]))
        sys.stdout.flush()


def main():
    harness.program = str(Path(sys.argv[1]).resolve())
    seed = int(sys.argv[3]) or random.SystemRandom().randrange(1, 2**32)
    sys.exit(Chaos(float(sys.argv[2]), seed).run())


if __name__ == "__main__":
    main()
