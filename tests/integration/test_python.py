#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Trainers in Python: what they get is what the program's own trainers get; who dies is noticed; a run that is started
again goes on; wrong use is one line.

    test_python.py MILLRACE [unittest arguments]
"""
import json
import os
import re
import signal
import struct
import subprocess
import sys
from pathlib import Path

import cluster
import harness
from cluster import Cluster, wait_until

ROOT = Path(__file__).resolve().parents[2]
PYTHON = "/usr/bin/python3"  # Debian's: it has the packages
RANK = ROOT / "tests" / "integration" / "python_rank.py"
EXAMPLES = ROOT / "python" / "examples"
CORPUS = ROOT / "tests" / "fuzz" / "corpus" / "micro_batch"
QUICKSTART = ROOT / "config" / "quickstart.toml"
FIVE = ROOT / "config" / "five-algorithms.toml"
RESTART = 75


class Started:
    """A process with its output in a file."""

    def __init__(self, case, name, words, env=None):
        case.number += 1
        self.name = name
        self.log = case.dir / f"{case.number:02}-{name}.log"
        with open(self.log, "wb") as out:
            self.popen = subprocess.Popen(["setpriv", "--pdeathsig", "KILL", *map(str, words)],
                                          stdin=subprocess.DEVNULL, stdout=out, stderr=out, cwd=case.dir,
                                          env={**os.environ, **(env or {})})
        case.started.append(self)

    def text(self):
        return self.log.read_text(errors="replace")

    def lines(self):
        return self.text().splitlines()

    def has(self, line):
        return line in self.lines()

    def ended(self):
        return self.popen.poll() is not None

    def kill(self):
        self.popen.kill()
        self.popen.wait()


class Case(harness.Case):
    def setUp(self):
        super().setUp()
        self.number = 0
        self.started = []
        self.addCleanup(lambda: [one.kill() for one in self.started if not one.ended()])
        self.state = self.dir / "state"
        self.sets = [f"state={self.state}", "trainer.kind=external"]
        self.config = QUICKSTART

    def words(self, *more):
        return [word for each in (*self.sets, *more) for word in ("--set", each)]

    def run_it(self, *sets, options=()):
        """`millrace run` in the background; its summary goes to a file."""
        self.json = self.dir / "summary.json"
        return Started(self, "run", [harness.program, "run", self.config, "--json", self.json, *self.words(*sets),
                                     *options])

    def rank(self, number, *options, sets=()):
        return Started(self, f"rank-{number}", [PYTHON, RANK, self.config, number, *self.words(*sets), *options])

    def story(self):
        return "\n".join(f"--- {one.log.name}: {one.popen.poll()}\n{one.text()[-2500:]}" for one in self.started)

    def wait_for(self, what, condition, seconds=60):
        return wait_until(condition, seconds, what, self.story)

    def assert_ends(self, process, code=0, seconds=60):
        self.wait_for(f"{process.name} ends", process.ended, seconds)
        self.assertEqual(process.popen.returncode, code, self.story())

    def summary_of(self, run, *ranks):
        """Of a run that ends well, with its ranks."""
        for process in (run, *ranks):
            self.assert_ends(process, seconds=120)
            self.assertNotIn("ResourceWarning", process.text())
        for rank in ranks:
            self.assertEqual(rank.lines()[-1], "ended", self.story())
        summary = json.loads(self.json.read_text())
        self.assertTrue(summary["balanced"])
        return summary

    def undisturbed(self, *sets):
        """The summary of the same run with the program's own trainers."""
        out = self.dir / "one.json"
        words = [word for each in sets for word in ("--set", each)]
        done = self.run_millrace("run", self.config, "--json", out, *words)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        return json.loads(out.read_text())

    def hash_of(self, folder):
        done = subprocess.run([PYTHON, ROOT / "tests/tools/grid_hash.py", folder], capture_output=True, text=True,
                              timeout=harness.DEADLINE_S, check=True)
        return done.stdout.split()[-1]


def tensors_of(file):
    """By name: dtype, shape and bytes; and padding and names of a dumped micro batch."""
    raw = file.read_bytes()
    size = struct.unpack_from("<Q", raw)[0]
    header = json.loads(raw[8:8 + size])
    about = header.pop("__metadata__")
    return {name: (at["dtype"], at["shape"], raw[8 + size + at["data_offsets"][0]:8 + size + at["data_offsets"][1]])
            for name, at in header.items()}, about["padding"], json.loads(about["env_names"])


class Data(Case):
    def assert_same_tensors(self, sets=()):
        """Dumps of the program and of Python's widened arrays, of one run."""
        theirs, ours = self.dir / "theirs", self.dir / "ours"
        run = self.run_it(*sets, options=["--dump", theirs])
        summary = self.summary_of(run, *(self.rank(n, "--dump", ours, sets=sets) for n in range(2)))
        files = sorted(path.relative_to(theirs) for path in theirs.rglob("*.safetensors"))
        self.assertEqual(files, sorted(path.relative_to(ours) for path in ours.rglob("*.safetensors")))
        self.assertEqual(len(files), summary["micro_batches"])
        names = set()
        for file in files:
            want, got = tensors_of(theirs / file), tensors_of(ours / file)
            self.assertEqual(want[0].keys(), got[0].keys(), file)
            for name, value in want[0].items():
                self.assertEqual(value, got[0][name], f"{file}: {name}")
            self.assertEqual(want[1:], got[1:], file)
            names |= want[0].keys()
        self.assertEqual(self.hash_of(ours), summary["grid_hash"])
        return summary, names

    def test_python_ranks_get_the_grid_of_the_programs_own_trainers_and_widen_it_to_the_same_bytes(self):
        summary, names = self.assert_same_tensors()
        self.assertEqual(summary["grid_hash"], self.undisturbed()["grid_hash"])
        for name in ("routed_experts", "mm_kwargs.pixel_values", "mm_token_type_ids"):
            self.assertIn(name, names)

    def test_so_they_do_with_weights_of_all_components(self):
        self.config = FIVE
        _, names = self.assert_same_tensors()
        for name in ("rl_weights", "ce_weights"):
            self.assertIn(name, names)

    def test_the_digests_and_totals_of_steps_are_those_of_the_summary(self):
        run = self.run_it()
        ranks = [self.rank(n) for n in range(2)]
        reports = self.summary_of(run, *ranks)["step_reports"]
        want = [(one["step"], one["digest"],
                 [one["loss_tokens"][name] for name in ("rl", "ce", "ref_kl")]) for one in reports]
        for rank in ranks:
            got = [(int(number), digest, json.loads(totals)) for number, digest, totals in
                   re.findall(r"^step (\d+) ([0-9a-f]{32}) (\[.*?\]) \d+$", rank.text(), re.M)]
            self.assertEqual(got, want)


class Peers(Case):
    def test_two_peers_share_a_rank_and_their_slices_join_to_the_whole(self):
        sets = ("trainer.peers=2",)
        run = self.run_it(*sets)
        ranks = [self.rank(n, "--peer", p, "--slices", 4, sets=sets) for n in range(2) for p in range(2)]
        summary = self.summary_of(run, *ranks)
        self.assertEqual(summary["grid_hash"], self.undisturbed()["grid_hash"])
        for one, other in (ranks[0:2], ranks[2:4]):
            self.assertEqual([line for line in one.lines() if line.startswith("step")],
                             [line for line in other.lines() if line.startswith("step")])

    def test_a_step_is_trained_when_all_peers_have_said_so(self):
        sets = ("trainer.peers=2", "trainer.ranks=1", "link.timeout=5")
        run = self.run_it(*sets)
        quick = self.rank(0, "--peer", 0, sets=sets)
        slow = self.rank(0, "--peer", 1, "--hold-at", 3, sets=sets)
        self.wait_for("one has trained step 3", lambda: quick.has("trained 3") and slow.has("holds 3"))
        endpoint = (self.state / "trainer-0.endpoint").read_text().split()[0]
        said = lambda: self.run_millrace("why", "--connect", endpoint).stdout
        self.wait_for("why says it", lambda: "1 of 2 Python trainers in step 3" in said())
        self.assertFalse(quick.ended())
        self.assertNotIn("step 4", quick.text())
        slow.kill()
        self.assert_ends(run, 1)
        self.assertIn("the Python trainer of rank 0, peer 1 is gone: nothing heard for", run.lines()[-1])
        self.assert_ends(quick, 1)


class Death(Case):
    SETS = ("link.timeout=3",)

    def killed_in_step_3(self, *sets):
        run = self.run_it(*self.SETS, *sets)
        dies = self.rank(0, "--hold-at", 3, sets=self.SETS)
        other = self.rank(1, sets=self.SETS)
        self.wait_for("step 3", lambda: dies.has("holds 3"))
        dies.kill()
        return run, other

    def test_when_one_is_killed_in_a_step_all_end_by_the_deadline_with_the_reason(self):
        run, other = self.killed_in_step_3()
        self.assert_ends(run, 1, 15)
        self.assertRegex(run.lines()[-1],
                         r"millrace: trainer-0: generation 1: the Python trainer of rank 0 is gone: nothing heard for 3\.\d s in step 3$")
        self.assert_ends(other, 1, 15)
        self.assertRegex(other.lines()[-1], r"^Lost: .*the Python trainer of rank 0 is gone: nothing heard for .* in step 3$")

    def test_if_somebody_starts_them_again_they_end_with_75(self):
        run, other = self.killed_in_step_3("recovery.wait=60")
        self.assert_ends(run, RESTART, 15)
        self.assert_ends(other, RESTART, 15)

    def test_one_that_fails_says_why_and_nobody_waits_for_a_deadline(self):
        run = self.run_it("link.timeout=60")
        fails = self.rank(0, "--fail-at", 2, sets=("link.timeout=60",))
        other = self.rank(1, sets=("link.timeout=60",))
        self.assert_ends(fails, 1)
        self.assert_ends(run, 1, 15)
        self.assertIn("the Python trainer of rank 0 has left in step 2: ArithmeticError: the loss is not finite",
                      run.lines()[-1])
        self.assert_ends(other, 1, 15)

    def test_when_the_program_is_killed_they_end_at_once_to_be_started_again(self):
        run = self.run_it()
        ranks = [self.rank(n, *(("--hold-at", 3) if n == 0 else ())) for n in range(2)]
        self.wait_for("step 3", lambda: ranks[0].has("holds 3"))
        run.kill()
        self.assert_ends(ranks[1], RESTART, 10)
        self.assertIn("the connection was cut", ranks[1].lines()[-1])

    def test_a_run_that_a_signal_stops_ends_well_for_them(self):
        run = self.run_it("source.pace=20")
        ranks = [self.rank(n) for n in range(2)]
        self.wait_for("step 1", lambda: ranks[0].has("trained 1"))
        run.popen.send_signal(signal.SIGTERM)
        self.assert_ends(run, 1)
        for rank in ranks:
            self.assert_ends(rank)
            self.assertEqual(rank.lines()[-1], "ended")


class Resume(Case):
    SETS = ("batch.traces=20", "trainer.checkpoint_every=5")

    def test_a_run_that_is_started_again_goes_on_after_the_checkpoint_of_python(self):
        run = self.run_it(*self.SETS)
        ranks = [self.rank(n, "--hold-at", 8, sets=self.SETS) for n in range(2)]
        self.wait_for("step 8", lambda: all(rank.has("holds 8") for rank in ranks))
        for rank in ranks:
            self.assertTrue(rank.has("generation 1 resume 0") and rank.has("durable 5"), rank.text())
        for process in (run, *ranks):
            process.kill()
        run = self.run_it(*self.SETS)
        ranks = [self.rank(n, sets=self.SETS) for n in range(2)]
        summary = self.summary_of(run, *ranks)
        for rank in ranks:
            self.assertIn("resume 5", rank.lines()[0])
            self.assertTrue(rank.lines()[1].startswith("step 6 "), rank.text())
        # The end of the run has a checkpoint, whatever its number.
            self.assertTrue(rank.has(f"durable {summary['steps']}"), rank.text())
        self.assertEqual(summary["grid_hash"], self.undisturbed(*self.SETS)["grid_hash"])
        kept = sorted(path.name for path in (self.state / "checkpoints").iterdir())
        self.assertEqual(kept, [f"step-{summary['steps']:06}"])

    def test_a_checkpoint_of_another_kind_of_trainer_is_refused_by_name(self):
        self.sets = [f"state={self.state}"]
        self.assert_ends(self.run_it(*self.SETS, options=["--steps", 5]))
        self.sets.append("trainer.kind=external")
        run = self.run_it(*self.SETS)
        self.assert_ends(run, 1)
        self.assertIn("it is of policy replay, not of external", run.lines()[-1])


class Processes(cluster.Case):
    """A process for each role: ranks are elsewhere, and links have keys."""

    def setUp(self):
        super().setUp()
        self.number = 0
        self.started = []
        self.addCleanup(lambda: [one.kill() for one in self.started if not one.ended()])

    def rank(self, system, number, *options):
        sets = [word for each in system.sets for word in ("--set", each)]
        return Started(self, f"rank-{number}", [PYTHON, RANK, cluster.CONFIG, number, *sets, *options])

    def system(self, *sets):
        keys = self.dir / "keys"
        self.assertEqual(self.run_millrace("keygen", keys).returncode, 0)
        system = Cluster(self, ["trainer.kind=external", f"curve.folder={keys}", *sets], timeout=3)
        return system.start_all(env_reader=1, assembler=1, scorer=1, packer=1)

    def test_ranks_of_other_processes_are_found_in_the_state_folder_with_keys(self):
        system = self.system()
        ranks = [self.rank(system, n) for n in range(2)]
        self.assert_same(system.summary(), self.in_one_process())
        for rank in ranks:
            self.assertEqual(rank.popen.wait(20), 0, rank.text())

    def test_when_one_is_killed_in_a_step_every_process_ends_with_the_reason(self):
        system = self.system()
        dies = self.rank(system, 1, "--hold-at", 2)
        other = self.rank(system, 0)
        wait_until(lambda: "holds 2" in dies.text(), 60, "step 2", system.story)
        dies.kill()
        for process in system.running.values():
            self.assertEqual(process.exit_code(40), 1, system.story())
        self.assertIn("the Python trainer of rank 1 is gone: nothing heard for",
                      system.running["planner"].lines()[-1])
        self.assertEqual(other.popen.wait(20), 1, other.text())


class WrongUse(Case):
    def assert_one_line(self, process, code, *parts):
        self.assert_ends(process, code)
        self.assertEqual(len(process.lines()), 1, process.text())
        for part in parts:
            self.assertIn(part, process.text())

    def test_it_is_told_in_one_line(self):
        run = self.run_it()
        self.wait_for("its endpoint", lambda: (self.state / "trainer-1.endpoint").exists())
        endpoint = (self.state / "trainer-0.endpoint").read_text().split()[0]
        self.assert_one_line(self.rank(2), 2, "there is no rank 2: trainer.ranks = 2")
        self.assert_one_line(self.rank(2, "--endpoint", endpoint, sets=("trainer.ranks=3",)), 2,
                             f"Refused: {endpoint}: rank 2 is not in this process; it has: 0, 1")
        self.assert_one_line(self.rank(0, "--peer", 1), 2, "there is no peer 1: trainer.peers = 1")
        self.assert_one_line(self.rank(0, "--peer", 1, sets=("trainer.peers=2",)), 2,
                             "trainer.peers is 1 here, and 2 there")
        self.assert_one_line(self.rank(0, sets=("run.id=other",)), 2, "this is run 'quickstart', it was asked about run "
                                                                      "'other'")
        self.assert_one_line(self.rank(0, sets=("trainer.kind=policy",)), 2, "trainer.kind is 'policy'")
        self.assert_one_line(self.rank(0, "--wait", 0, sets=(f"state={self.dir}",)), RESTART,
                             "no process has rank 0", "trainer-0.endpoint", "millrace actor trainer --rank 0")
        self.assert_one_line(self.rank(0, "--wait", 0, "--endpoint", f"ipc://{self.dir}/none.sock"), RESTART,
                             "none.sock: nobody accepts connections there")
        self.assert_one_line(self.rank(0, sets=("state=",)), 2, "names no state folder")
        self.assert_one_line(self.rank(0, sets=("trainer.ranks=two",)), 2, "trainer.ranks = 'two' is of the wrong type")
        first = self.rank(0)
        said = lambda: self.run_millrace("why", "--connect", endpoint).stdout
        self.wait_for("rank 1 is missing", lambda: re.search(r"^trainer-1 waits for a Python trainer to attach", said(), re.M))
        self.assert_one_line(self.rank(0), 2, "Refused: ", "another process is the Python trainer of rank 0: it was heard")
        self.summary_of(run, first, self.rank(1))

    def test_a_run_with_other_trainers_refuses_them(self):
        self.sets = [f"state={self.state}"]
        run = self.run_it("source.pace=5")
        control = self.state / "control.sock"
        self.wait_for("its socket", control.exists)
        self.assert_one_line(self.rank(0, "--endpoint", f"ipc://{control}", sets=("trainer.kind=external",)), 2,
                             "no trainer here is for Python: set trainer.kind = \"external\"")
        run.kill()

    def test_calls_out_of_order_are_told(self):
        script = self.dir / "wrong.py"
        script.write_text(f"""
import sys
sys.path.insert(0, {str(ROOT / "python")!r})
import millrace

def told(what):
    try:
        what()
    except millrace.BadUse as why:
        print(why)

with millrace.Feeder(sys.argv[1], 0, set=sys.argv[2:]) as feeder:
    step = next(feeder)
    told(lambda: next(feeder))
    told(lambda: step.checkpoint_due)
    told(lambda: feeder.trained(7))
    try:
        feeder.durable(step)
    except millrace.Refused as why:
        print(why)
    told(lambda: millrace.slice_of(step.micro_batches[0].widen(), 0, 7))
    feeder.trained(step)
    told(lambda: next(feeder))
    print(step.checkpoint_due)
    feeder.durable(step)
    told(lambda: step.checkpoint_due and next(feeder))
""")
        sets = ("trainer.ranks=1", "trainer.checkpoint_every=1")
        self.run_it(*sets)
        done = Started(self, "wrong", [PYTHON, script, self.config, *self.sets, *sets])
        self.assert_ends(done)
        lines = done.lines()
        for line, part in zip(lines, ("step 1 is not trained: call feeder.trained", "ask for checkpoint_due after",
                                      "step 7 was not handed out last, 1 was", "step 1 cannot be durable",
                                      "cannot be cut into 7 equal parts", "a checkpoint of step 1 is due", "True"),
                              strict=True):
            self.assertIn(part, line, done.text())


class Example(Case):
    def test_the_bigram_learns_on_two_ranks(self):
        if subprocess.run([PYTHON, "-c", "import torch"], capture_output=True, check=False).returncode != 0:
            self.skipTest(f"{PYTHON} has no torch (Debian: python3-torch)")
        traces, recording = self.dir / "t.jsonl", self.dir / "t.mrec"
        traces.write_bytes(subprocess.run([PYTHON, EXAMPLES / "make_traces.py"], capture_output=True, check=True,
                                          timeout=60).stdout)
        self.assertEqual(self.run_millrace("import", traces, "-o", recording).returncode, 0)
        sets = [f"source.path={recording}", "vocab_size=16", "batch.traces=100", "seq_len=512",
                "trainer.checkpoint_every=4"]
        with cluster.free_socket("127.0.0.1") as port:
            address = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port.getsockname()[1]), "WORLD_SIZE": "2",
                       "PYTHONPATH": str(ROOT / "python")}
        ranks = [Started(self, f"rank-{n}", [PYTHON, EXAMPLES / "train_bigram.py", self.config, *self.sets, *sets],
                         {**address, "RANK": str(n)}) for n in range(2)]
        run = self.run_it(*sets)
        for process in (run, *ranks):
            self.assert_ends(process, seconds=180)
        gains = [float(gain) for gain in re.findall(r"^step \d+: .*gain ([-+0-9.]+)", ranks[0].text(), re.M)]
        self.assertGreater(len(gains), 10, ranks[0].text())
        self.assertLess(abs(gains[0]), 1e-6, "at first it is the policy that sampled")
        self.assertGreater(sum(gains[-4:]), 4 * 0.05, ranks[0].text())


class Package(Case):
    def test_bytes_that_were_changed_are_refused_as_such_and_nothing_else_comes_of_them(self):
        seed = int(os.environ.get("MILLRACE_SEED", "0")) or int.from_bytes(os.urandom(4), "little")
        script = self.dir / "hostile.py"
        script.write_text(f"""
import random, struct, sys
from pathlib import Path
sys.path.insert(0, {str(ROOT / "python")!r})
import millrace

def parts_of(raw):  # tests/fuzz/micro_batch_fuzz.cpp
    count, raw, arrays = raw[0], raw[1:], []
    for _ in range(count):
        size = struct.unpack_from("<I", raw)[0]
        arrays.append(raw[4:4 + size])
        raw = raw[4 + size:]
    return [raw, *arrays]

chance, counts = random.Random({seed}), [0, 0]
for file in sorted(Path({str(CORPUS)!r}).iterdir()):
    whole = parts_of(file.read_bytes())
    millrace.MicroBatch([memoryview(part) for part in whole]).widen()
    for _ in range(300):
        parts = [bytearray(part) for part in whole]
        for _ in range(chance.randint(1, 4)):
            part = chance.choice([part for part in parts if part] or [bytearray(8)])
            at = chance.randrange(len(part))
            how = chance.randrange(3)
            if how == 0:
                part[at] = chance.randrange(256)
            elif how == 1:
                part[at:at + 4] = struct.pack("<I", chance.choice([0, 1, 2**31, 2**32 - 1, chance.randrange(4096)]))
            else:
                del part[at:]
        try:
            batch = millrace.MicroBatch([memoryview(bytes(part)) for part in parts])
        except millrace.BadFormat as why:
            assert "\\n" not in str(why)
            counts[0] += 1
            continue
        counts[1] += 1
        if batch.tokens + batch.padding < 100_000:
            batch.widen()
print(*counts)
""")
        done = subprocess.run([PYTHON, script], capture_output=True, text=True, timeout=harness.DEADLINE_S, check=False)
        self.assertEqual(done.returncode, 0, f"seed {seed}: {done.stderr}")
        refused, taken = map(int, done.stdout.split())
        self.assertGreater(refused, taken // 2, f"seed {seed}")

    def test_the_readers_of_the_wire_follow_from_the_schemas(self):
        done = subprocess.run([sys.executable, ROOT / "python" / "generate_wire.py", "--check"], capture_output=True,
                              text=True, timeout=60, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)


def missing():
    """What Debian's Python lacks."""
    done = subprocess.run([PYTHON, "-c", "import zmq, flatbuffers, numpy, xxhash"], capture_output=True, text=True,
                          check=False)
    return done.stderr.splitlines()[-1] if done.returncode else ""


if __name__ == "__main__":
    if why := missing():
        sys.exit(f"test_python: {why}; launch/setup.sh --tests installs it")
    harness.main()
