#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs that die and go on: at each named crash point, at random moments, with a full disk, in a folder of another run.

    test_recovery.py MILLRACE [unittest arguments]

MILLRACE_CHAOS_SEED: that of an earlier test. MILLRACE_KEEP: a folder that gets all state folders of a test that failed.
"""
import json
import os
import random
import re
import resource
import shutil
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import cluster
import harness
from cluster import Cluster, wait_until
from planner_log import PlannerLog, set_version
from test_run import rollout

ROOT = Path(__file__).resolve().parents[2]
QUICKSTART = ROOT / "config" / "quickstart.toml"
AT_ONCE = 2  # runs
MOST_STARTS = 12
FULL = "until there is space"
SAME = ("grid_hash", "ledger", "episodes", "groups", "tokens", "steps", "samples", "sample_tokens", "micro_batches",
        "ledger_samples", "cut_tokens")


class Run:
    """One start of `millrace run`. Its output goes on in a file of its own."""

    def __init__(self, folder, sets, words=(), env=None):
        self.folder = folder
        self.json = folder / "summary.json"
        self.json.unlink(missing_ok=True)
        self.log = folder / "output"
        self.before = self.log.stat().st_size if self.log.exists() else 0
        words = [harness.program, "run", QUICKSTART, "--json", self.json, *words]
        for each in sets:
            words += ["--set", each]
        with open(self.log, "ab") as out:
            self.popen = subprocess.Popen(list(map(str, words)), stdin=subprocess.DEVNULL, stdout=out, stderr=out,
                                          cwd=folder, env={**os.environ, **(env or {})})

    def text(self):
        """Of this start."""
        return self.log.read_bytes()[self.before:].decode(errors="replace")

    def has_said(self, pattern):
        return re.search(pattern, self.text(), re.M)

    def code(self, seconds=harness.DEADLINE_S):
        try:
            return self.popen.wait(timeout=seconds)
        except subprocess.TimeoutExpired:
            why = subprocess.run([harness.program, "why", "--connect", f"ipc://{self.folder / 'state' / 'control.sock'}"],
                                 capture_output=True, text=True, timeout=30, check=False)
            self.kill()
            raise AssertionError(f"it has not ended within {seconds} s:\n{self.story()}{why.stdout}{why.stderr}") from None

    def story(self):
        """What it said, without lines of progress but the last."""
        lines = self.text().splitlines()
        last = [line for line in lines if line.startswith("read ")][-1:]
        return "\n".join([line for line in lines if not line.startswith("read ")][-40:] + last) + "\n"

    def ended(self):
        return self.popen.poll() is not None

    def kill(self):
        self.popen.kill()
        self.popen.wait()

    def summary(self):
        return json.loads(self.json.read_text())


class Case(harness.Case):
    """Small runs of 19 steps, three checkpoints among them."""

    def setUp(self):
        super().setUp()
        seed = int(os.environ.get("MILLRACE_CHAOS_SEED", "0")) or random.SystemRandom().randrange(1, 2**32)
        self.random = random.Random(seed)
        print(f"seed {seed} ", end="", file=sys.stderr, flush=True)
        self.number = 0
        self.recording = self.synth(scale="0.5")
        self.sets = [f"source.path={self.recording}", "batch.traces=8", "trainer.ranks=2", "trainer.checkpoint_every=5",
                     "steps.keep=durable"]

    def folder(self):
        self.number += 1
        out = self.dir / f"run-{self.number:03}"
        out.mkdir()
        return out

    def start(self, folder, *sets, words=(), env=None):
        run = Run(folder, [*self.sets, f"state={folder / 'state'}", *sets], words, env)
        self.addCleanup(run.kill)
        return run

    def ends_well(self, folder, *sets):
        """The summary of one more start."""
        run = self.start(folder, *sets)
        self.assertEqual(run.code(), 0, run.text())
        return run.summary()

    def undisturbed(self, *sets):
        """In a folder of its own: its summary and how long it took, s."""
        folder = self.folder()
        begun = time.monotonic()
        summary = self.ends_well(folder, *sets)
        took = time.monotonic() - begun
        self.assertTrue(summary["balanced"])
        self.check_log(folder, summary)
        return summary, took

    def log_of(self, folder):
        return PlannerLog(folder / "state" / "planner.log")

    def check_log(self, folder, summary):
        log = self.log_of(folder)
        self.assertEqual(log.problems(), [])
        self.assertEqual(len(log.commits), summary["steps"])
        self.assertEqual(log.trained, summary["steps"])
        of_log, told = log.ledger(), dict(summary["ledger"])
        of_log.pop("held"), told.pop("held")
        self.assertEqual(of_log, told)
        return log

    def assert_same(self, folder, summary, one):
        self.assertTrue(summary["balanced"])
        for key in SAME:
            self.assertEqual(summary.get(key), one.get(key), key)
        return self.check_log(folder, summary)

    def goes_on_to(self, one, folder, *sets):
        """Starts it again until it ends with 0."""
        for _ in range(MOST_STARTS):
            run = self.start(folder, *sets)
            code = run.code()
            if code == 0:
                return self.assert_same(folder, run.summary(), one)
            self.assertEqual(code, 75, run.text())
        raise AssertionError(f"it has wished for {MOST_STARTS} starts:\n{run.text()[-3000:]}")

    def all_of(self, jobs):
        """Some at a time; every failure is told."""
        failures = []

        def one(job):
            name, work = job
            try:
                work()
            except Exception as why:  # pylint: disable=broad-except
                failures.append(f"{name}: {why}")
                print(failures[-1], file=sys.stderr, flush=True)
        with ThreadPoolExecutor(AT_ONCE) as pool:
            list(pool.map(one, jobs))
        if failures:
            if "MILLRACE_KEEP" in os.environ:
                shutil.copytree(self.dir, os.environ["MILLRACE_KEEP"], ignore=shutil.ignore_patterns("*.sock*"))
            raise AssertionError(f"{len(failures)} of {len(jobs)} failed, see above")


class CrashPoints(Case):
    def traced(self, folder, *sets, env=None):
        """The names that a start passes."""
        file = folder / "trace"
        file.unlink(missing_ok=True)
        run = self.start(folder, *sets, env={"MILLRACE_CRASH_TRACE": str(file), **(env or {})})
        return run.code(), file.read_text().split() if file.exists() else [], run

    def names(self):
        """Of an undisturbed run, and those that only one that goes on passes."""
        folder = self.folder()
        code, fresh, run = self.traced(folder)
        self.assertEqual(code, 0, run.text())
        resumed = []
        for name in self.random.sample(fresh, 6):
            folder = self.folder()
            self.killed_at(folder, name, 4)
            code, passed, run = self.traced(folder)
            self.assertEqual(code, 0, run.text())
            resumed += passed
        return fresh, sorted(set(resumed) - set(fresh))

    def killed_at(self, folder, name, passes):
        """The start was killed there, at that pass or, if it has not so many, at the first."""
        run = self.start(folder, env={"MILLRACE_CRASH_AT": f"{name}:{passes}"})
        code = run.code()
        if code == 0 and passes > 1:
            shutil.rmtree(folder / "state")
            return self.killed_at(folder, name, 1)
        self.assertEqual(code, -signal.SIGKILL, f"at {name}:{passes}\n{run.text()}")
        return run

    def killed_at_once_more(self, folder, name):
        """For points that only a run that goes on passes: killed anywhere, then there, if it comes there."""
        run = self.start(folder)
        wait_until(lambda: run.ended() or run.has_said(r"^step \d:"), 60, "a step", run.text)
        run.kill()
        run = self.start(folder, env={"MILLRACE_CRASH_AT": name})
        self.assertIn(run.code(), (0, -signal.SIGKILL), run.text())

    def test_a_run_killed_at_any_of_them_goes_on_to_the_same_end(self):
        one, _ = self.undisturbed()
        fresh, resumed = self.names()
        print(f"{len(fresh)} and {len(resumed)} points ", end="", file=sys.stderr, flush=True)
        self.assertGreaterEqual(len(fresh) + len(resumed), 40, fresh + resumed)
        self.assertEqual(len(set(fresh)), len(fresh))
        jobs = []
        for name in fresh:
            for passes in (1, self.random.randrange(2, 15)):
                folder = self.folder()
                jobs.append((f"{folder.name}, {name}:{passes}", lambda f=folder, n=name, p=passes: (
                    self.killed_at(f, n, p), self.goes_on_to(one, f))))
        for name in resumed:
            folder = self.folder()
            jobs.append((f"{folder.name}, {name}", lambda f=folder, n=name: (self.killed_at_once_more(f, n), self.goes_on_to(one, f))))
        self.all_of(jobs)


class Kills(Case):
    COUNT = 50

    def killed_after(self, folder, seconds):
        """Whether it lived so long."""
        run = self.start(folder)
        try:
            run.popen.wait(timeout=seconds)
        except subprocess.TimeoutExpired:
            run.kill()
            return True
        self.assertEqual(run.popen.returncode, 0, run.text())
        return False

    def length(self):
        """The undisturbed run's summary, and how long it takes when others run beside it, s."""
        one, _ = self.undisturbed()
        return one, max(self.undisturbed()[1] for _ in range(3))

    def test_a_run_killed_at_random_moments_goes_on_to_the_same_end(self):
        one, length = self.length()
        jobs, killed = [], []

        def work(folder, moment):
            if self.killed_after(folder, moment):
                killed.append(moment)
            self.goes_on_to(one, folder)
        for i in range(self.COUNT):
            moment = length * (i + self.random.random()) / self.COUNT
            folder = self.folder()
            jobs.append((f"{folder.name}, killed after {moment:.4f} s", lambda f=folder, m=moment: work(f, m)))
        self.random.shuffle(jobs)
        self.all_of(jobs)
        self.assertGreater(len(killed), self.COUNT / 2, "the moments were too late")

    def test_a_run_killed_again_and_again_goes_on_to_the_same_end(self):
        one, length = self.length()
        folder = self.folder()
        for _ in range(self.COUNT):
            if not self.killed_after(folder, self.random.uniform(0, length)):
                break
        self.goes_on_to(one, folder)


class Keeps(Case):
    """What a run does that has a state folder."""

    def killed_at_step(self, step, *sets):
        """Its folder. It was the last step that the log says to be trained."""
        folder = self.folder()
        run = self.start(folder, *sets, env={"MILLRACE_CRASH_AT": f"planner.trained.written:{step}"})
        self.assertEqual(run.code(), -signal.SIGKILL, run.text())
        self.assertEqual(self.log_of(folder).trained, step)
        return folder

    def test_trained_steps_after_a_checkpoint_are_rolled_back_and_named(self):
        self.sets[-1] = "steps.keep=trained"
        folder = self.killed_at_step(7)
        before = self.log_of(folder)
        self.assertIn(before.durable, (0, 5))
        run = self.start(folder)
        self.assertEqual(run.code(), 0, run.text())
        summary, log = run.summary(), self.log_of(folder)
        [(first, last, trained)] = log.rolled_back
        self.assertEqual((first, trained), (before.durable + 1, 7))
        self.assertEqual(last, len(before.commits))
        self.assertTrue(run.has_said(f"steps {first} to {trained} are rolled back"), run.text())
        self.assertTrue(summary["balanced"])
        lost = sum(states.count("rolled_back") for groups in log.lost for states in groups.values())
        self.assertGreater(lost, 0)
        self.assertEqual(summary["ledger"]["rolled_back"], lost)
        self.check_log(folder, summary)

    def test_with_steps_that_are_kept_nothing_is_rolled_back(self):
        one, _ = self.undisturbed()
        folder = self.killed_at_step(7)
        log = self.goes_on_to(one, folder)
        self.assertEqual((log.rolled_back, log.lost), ([], []))

    def test_a_finished_run_that_is_started_again_does_nothing_and_says_the_same(self):
        one, _ = self.undisturbed()
        folder = self.folder()
        self.ends_well(folder)
        before = self.log_of(folder).counts
        run = self.start(folder)
        self.assertEqual(run.code(), 0, run.text())
        self.assertTrue(run.has_said(one["grid_hash"]), run.text())
        log = self.assert_same(folder, run.summary(), one)
        before["open"] += 1
        self.assertEqual((log.counts["commit"], log.counts["trained"], log.counts["settled"]),
                         (before["commit"], before["trained"], before["settled"]))

    def test_a_run_of_some_steps_goes_on_where_it_ended(self):
        one, _ = self.undisturbed()
        folder = self.folder()
        run = self.start(folder, words=("--steps", "7"))
        self.assertEqual(run.code(), 0, run.text())
        self.assertEqual(run.summary()["steps"], 7)
        self.goes_on_to(one, folder)

    def assert_refused(self, folder, *parts, sets=()):
        log = folder / "state" / "planner.log"
        before = log.read_bytes()
        run = self.start(folder, *sets)
        self.assertIn(run.code(), (1, 2), run.text())
        said = [line for line in run.text().splitlines() if line.startswith("millrace: ")]
        self.assertEqual(len(said), 1, run.text())
        for part in parts:
            self.assertIn(part, said[0])
        self.assertEqual(log.read_bytes(), before)

    def test_a_folder_of_another_run_source_or_number_of_ranks_is_refused_by_name(self):
        folder = self.killed_at_step(3)
        other = self.synth("other.mrec", "0.5", "--seed", "2")
        self.assert_refused(folder, str(self.recording), str(other), sets=[f"source.path={other}"])
        self.assert_refused(folder, "trainer.ranks", "2", "3", sets=["trainer.ranks=3"])
        self.assert_refused(folder, "run.id", "quickstart", "other", sets=["run.id=other"])
        self.assertEqual(self.ends_well(folder)["grid_hash"], self.undisturbed()[0]["grid_hash"])

    def test_a_folder_of_a_later_version_is_refused_and_left_as_it_is(self):
        folder = self.killed_at_step(3)
        log = folder / "state" / "planner.log"
        version = log.read_bytes()[8]
        set_version(log, version)  # the checksum that this test makes is the right one
        self.start(folder, words=("--steps", "4")).code()
        self.assertGreaterEqual(len(self.log_of(folder).opens), 2)
        set_version(log, version + 1)
        self.assert_refused(folder, "version", str(version + 1))

    def test_a_folder_in_use_is_refused_by_the_lock_and_the_run_in_it_goes_on(self):
        one, _ = self.undisturbed()
        folder = self.folder()
        run = self.start(folder, "source.pace=6")
        wait_until(lambda: run.ended() or run.has_said(r"^step 1:"), 60, "step 1", run.text)
        second = self.start(folder)
        self.assertIn(second.code(), (1, 2), second.text())
        self.assertRegex(second.text(), "(?i)lock|in use")
        self.assertEqual(run.code(), 0, run.text())

    def test_other_limits_than_those_of_the_folder_win_and_are_told(self):
        # A table of one size in the folder, of another in the config: reverb #103.
        one, _ = self.undisturbed()
        folder = self.killed_at_step(3, "planner.lookahead=4")
        run = self.start(folder, "planner.lookahead=64")
        self.assertEqual(run.code(), 0, run.text())
        self.assertTrue(run.has_said("the config is not the one of the last start"), run.text())
        self.assertTrue(run.has_said("planner.lookahead 4 -> 64: from here on this one counts"), run.text())
        self.assert_same(folder, run.summary(), one)

    def test_a_setting_that_the_log_rests_on_is_refused_by_name_and_the_folder_goes_on_with_the_old_one(self):
        one, _ = self.undisturbed()
        folder = self.killed_at_step(3)
        self.assert_refused(folder, "env_default.group_size", "the config says 17", sets=("env_default.group_size=17",))
        run = self.start(folder)
        self.assertEqual(run.code(), 0, run.text())
        self.assertFalse(run.has_said("the config is not the one"), run.text())
        self.assert_same(folder, run.summary(), one)


class FullDisk(Case):
    def limit(self, run, size):
        hard = resource.prlimit(run.popen.pid, resource.RLIMIT_FSIZE)[1]
        resource.prlimit(run.popen.pid, resource.RLIMIT_FSIZE, (hard if size is None else size, hard))

    def assert_waits_then_ends(self, run, folder, one, lift):
        wait_until(lambda: run.ended() or run.has_said(FULL), 60, "it says that the disk is full", run.text)
        self.assertFalse(run.ended(), run.text())
        steps = len(re.findall(r"^step \d+:", run.text(), re.M))
        self.assertLess(steps, one["steps"])
        lift()
        self.assertEqual(run.code(), 0, run.text())
        self.assert_same(folder, run.summary(), one)

    def test_a_file_that_must_not_grow_stops_the_intake_until_it_may(self):
        one, _ = self.undisturbed()
        folder = self.folder()
        run = self.start(folder, "source.pace=6")
        wait_until(lambda: run.ended() or run.has_said(r"^step 3:"), 60, "step 3", run.text)
        self.assertFalse(run.ended(), run.text())
        self.limit(run, (folder / "state" / "planner.log").stat().st_size + self.random.randrange(5000))
        self.assert_waits_then_ends(run, folder, one, lambda: self.limit(run, None))

    def test_a_run_that_dies_with_a_full_disk_goes_on_when_there_is_room(self):
        one, _ = self.undisturbed()
        folder = self.folder()
        run = self.start(folder, "source.pace=6")
        wait_until(lambda: run.ended() or run.has_said(r"^step 3:"), 60, "step 3", run.text)
        self.limit(run, (folder / "state" / "planner.log").stat().st_size + self.random.randrange(5000))
        wait_until(lambda: run.ended() or run.has_said(FULL), 60, "it says that the disk is full", run.text)
        run.kill()
        self.goes_on_to(one, folder)

    SCRIPT = r"""
mount -t tmpfs -o size=64m none "$1" || exit 99
rest=$(( $(df --output=avail -B1024 "$1" | tail -n 1) - $2 ))
head -c "${rest}k" /dev/zero >"$1/filling" || exit 99
shift 2
"$@" &
run=$!
read -r _ # the test says that there is room
rm "$STATE/filling"
wait "$run"
code=$?
cp "$STATE/planner.log" "$STATE.log"
exit "$code"
"""

    def test_a_full_file_system_stops_the_intake_until_there_is_room(self):
        one, _ = self.undisturbed()
        log = self.dir / "run-001" / "state" / "planner.log"
        folder = self.folder()
        state = folder / "state"
        state.mkdir()
        out = folder / "output"
        words = [harness.program, "run", QUICKSTART, "--json", folder / "summary.json"]
        for each in (*self.sets, f"state={state}", "source.pace=6"):
            words += ["--set", each]
        room_kib = self.random.randrange(log.stat().st_size // 4096, log.stat().st_size // 2048)
        with open(out, "wb") as file:
            shell = subprocess.Popen(["unshare", "-rm", "bash", "-c", self.SCRIPT, "bash", str(state), str(room_kib),
                                      *map(str, words)], stdin=subprocess.PIPE, stdout=file, stderr=file, cwd=folder,
                                     env={**os.environ, "STATE": str(state)}, start_new_session=True)
        self.addCleanup(lambda: shell.poll() is None and os.killpg(shell.pid, signal.SIGKILL))

        def text():
            return out.read_text(errors="replace")

        wait_until(lambda: shell.poll() is not None or re.search(FULL, text()), 60, "it says that the disk is full", text)
        if shell.poll() in (1, 99) and re.search("unshare|mount", text()):
            self.skipTest("this machine lets the test mount nothing: " + text().strip().splitlines()[-1])
        self.assertIsNone(shell.poll(), text())
        shell.communicate(b"\n", timeout=harness.DEADLINE_S)
        self.assertEqual(shell.returncode, 0, text())
        summary = json.loads((folder / "summary.json").read_text())
        (state / "planner.log").write_bytes((folder / "state.log").read_bytes())
        self.assert_same(folder, summary, one)


class Waits(Case):
    """Nothing waits for ever."""

    def imported(self, lines):
        traces, recording = self.dir / "t.jsonl", self.dir / "t.mrec"
        traces.write_text("".join(line + "\n" for line in lines))
        done = self.run_millrace("import", traces, "-o", recording)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        return f"source.path={recording}"

    def test_a_batch_of_which_some_groups_are_refused_ends_short_when_the_source_does(self):
        # 16 groups are wanted and come, three are refused at the door: AReaL #588.
        def slot_of(task, slot):
            return 500 + slot if task in (2, 7, 15) else slot  # a token that the vocabulary lacks
        self.sets[0] = self.imported([rollout(slot_of(task, slot), slot % 2, 8 + slot, task)
                                      for task in range(16) for slot in range(4)])
        summary = self.ends_well(self.folder(), "batch.traces=64", "vocab_size=200")
        self.assertEqual((summary["steps"], summary["ledger"]["trained"], summary["ledger"]["rejected"]), (1, 52, 12))
        held = self.ends_well(self.folder(), "batch.traces=64", "vocab_size=200", "batch.last=hold")
        self.assertEqual((held["steps"], held["ledger"]["held"], held["ledger"]["rejected"]), (0, 52, 12))

    def test_a_source_that_ends_before_the_last_step_wanted_ends_the_run(self):
        # The third of ten steps is the last: NeMo-RL #3488.
        self.sets[0] = self.imported([rollout(slot, slot % 2, 8, task) for task in range(6) for slot in range(4)])
        folder = self.folder()
        run = self.start(folder, words=("--steps", "10"))
        self.assertEqual(run.code(), 0, run.text())
        self.assertEqual(run.summary()["steps"], 3)

    def test_without_readers_all_processes_end_with_a_line(self):
        recording = self.synth("long.mrec", "6")
        sets = [f"source.path={recording}", "batch.traces=20", "trainer.ranks=2", "env_reader.instances=2",
                "source.pace=40", "recovery.wait=0"]
        system = Cluster(self, sets).start_all()
        system.wait_for_step(1)
        lost = ("env-reader-0", "env-reader-1")
        for name in lost:
            system.running[name].kill()
        for name, process in system.running.items():
            if name in lost:
                continue
            self.assertEqual(process.exit_code(60), 1, system.story())
            said = [line for line in process.lines() if line.startswith("millrace: ")]
            self.assertEqual(len(said), 1, system.story())
            self.assertIn("env-reader-", said[0])

    def test_a_run_without_progress_says_who_is_waited_for_and_ends(self):
        recording = self.synth("long.mrec", "6")
        sets = [f"source.path={recording}", "batch.traces=20", "trainer.ranks=2", "source.pace=40", "progress.limit=5",
                "progress.stop=true"]
        system = Cluster(self, sets, timeout=60).start_all(env_reader=1)
        system.wait_for_step(1)
        system.running["env-reader-0"].send(signal.SIGSTOP)
        try:
            self.assertEqual(system.running["planner"].exit_code(90), 1, system.story())
        finally:
            system.running["env-reader-0"].send(signal.SIGCONT)
        self.assertIn("no step was trained", system.running["planner"].text().lower())


if __name__ == "__main__":
    harness.main()
