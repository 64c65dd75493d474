#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`millrace inspect` of a planner's log, whole, torn, damaged and of another version.

    test_inspect_log.py MILLRACE SAMPLE_PLANNER_LOG [unittest arguments]

SAMPLE_PLANNER_LOG FILE writes a log with every kind of record (tests/support/sample_log).
"""
import fcntl
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import harness
from planner_log import RECORD_MAGIC, PlannerLog, set_version

QUICKSTART = Path(__file__).resolve().parents[2] / "config" / "quickstart.toml"
RECORDS = 17  # of the sample
writer = os.path.abspath(sys.argv.pop(2))


class Case(harness.Case):
    def setUp(self):
        super().setUp()
        self.log = self.dir / "planner.log"
        subprocess.run([writer, self.log], check=True, timeout=harness.DEADLINE_S)

    def inspect(self, *words):
        return self.run_millrace("inspect", self.log, *words)

    def inspect_json(self, code=0):
        done = self.inspect("--json")
        self.assertEqual(done.returncode, code, done.stderr)
        return json.loads(done.stdout)

    def flip(self, offset):
        data = bytearray(self.log.read_bytes())
        data[offset] ^= 1
        self.log.write_bytes(data)

    def offsets(self):
        """Of all records."""
        data, at, out = self.log.read_bytes(), 0, []
        while (at := data.find(RECORD_MAGIC, at)) >= 0:
            out.append(at)
            at += 1
        return out


class Whole(Case):
    def test_it_agrees_with_another_reader_of_the_format(self):
        shown, log = self.inspect_json(), PlannerLog(self.log)
        self.assertEqual(log.problems(), [])
        self.assertEqual({name: count for name, count in shown["records"].items() if count}, dict(log.counts))
        self.assertEqual([step["step"] for step in shown["steps"]], list(log.commits))
        self.assertEqual((shown["committed"], shown["trained"], shown["durable"]), (3, log.trained, log.durable))
        self.assertEqual([(each["first"], each["last"], each["trained"]) for each in shown["events"]
                          if each["event"] == "rolled_back"], log.rolled_back)
        self.assertEqual([each["epoch"] for each in shown["events"] if each["event"] == "open"],
                         [epoch for _, epoch in log.opens])
        counts = log.ledger()  # this reader does not look which step is trained
        counts["trained"] -= 1
        counts["held"] += 1
        self.assertEqual(shown["ledger"], counts)

    def test_a_step_is_a_line_with_its_digest(self):
        done = self.inspect()
        self.assert_succeeds(done)
        self.assertRegex(done.stdout, r"(?m)^1 +durable +2 +6 +4 +200 +5 +2 +1 +2,000 +" + "11" * 16 + "$")
        self.assertRegex(done.stdout, r"(?m)^2 +trained .* " + "44" * 16 + "$")
        self.assertRegex(done.stdout, r"(?m)^3 +committed .* " + "55" * 16 + "$")

    def test_the_kind_of_file_is_told_by_its_content_not_its_name(self):
        os.rename(self.log, self.dir / "log.mrec")
        self.log = self.dir / "log.mrec"
        self.assertEqual(self.inspect_json()["run"], "sample")

    def test_a_log_that_is_locked_can_be_inspected(self):
        with open(self.log, "rb") as held:
            fcntl.flock(held, fcntl.LOCK_EX)
            self.assert_succeeds(self.inspect())

    def test_nothing_is_written(self):
        self.log.write_bytes(self.log.read_bytes()[:-1])
        before = self.log.read_bytes()
        os.chmod(self.log, 0o444)
        self.assert_succeeds(self.inspect())
        self.assertEqual(self.log.read_bytes(), before)
        self.assert_only("planner.log")


class Broken(Case):
    def test_a_torn_tail_is_told_and_is_no_failure(self):
        last = self.offsets()[-1]
        self.log.write_bytes(self.log.read_bytes()[:last + 20])
        done = self.inspect()
        self.assert_succeeds(done)
        self.assertIn(f"torn tail: 20 bytes at offset {last}", done.stdout)
        self.assertEqual(self.inspect_json()["torn_tail"], {"offset": last, "bytes": 20})

    def test_damage_fails_names_its_place_and_shows_what_stands_before(self):
        offset = self.offsets()[4]
        self.flip(offset + 40)
        done = self.inspect()
        self.assert_fails(done, 1, f"offset {offset}: ", "damaged")
        self.assertIn("start 1: ", done.stdout)
        self.assertNotIn("start 2: ", done.stdout)
        self.assertTrue(self.inspect_json(code=1)["damaged"])
        self.assert_succeeds(self.inspect("--allow-damage"))

    def test_a_damaged_header_of_the_file_fails(self):
        self.flip(20)
        self.assert_fails(self.inspect(), 1, "header", "checksum")

    def test_another_format_version_is_refused_with_both(self):
        set_version(self.log, 7)
        self.assert_fails(self.inspect(), 1, "format version 7", "knows version 1")

    def test_it_is_not_taken_for_a_recording(self):
        self.assert_fails(self.run_millrace("run", QUICKSTART, "--set",
                                            f"source.path={self.log}"), 1, "planner.log", "not a recording")


class Killed(Case):
    """The writer dies at a crash point, and is started again."""

    def setUp(self):
        super().setUp()
        self.log.unlink()

    def write(self, point=None):
        env = {**os.environ, **({"MILLRACE_CRASH_AT": point} if point else {})}
        return subprocess.run([writer, self.log], env=env, timeout=harness.DEADLINE_S, stderr=subprocess.PIPE,
                              check=False).returncode

    def records(self):
        return sum(self.inspect_json()["records"].values())

    def check_goes_on(self, whole_records):
        """What was whole is there, and the writer appends all of its records once more."""
        self.assertEqual(self.write(), 0)
        self.assertEqual(self.records(), whole_records + RECORDS)
        self.assertIsNone(self.inspect_json()["torn_tail"])

    def test_at_each_point_nothing_whole_is_lost_and_nothing_else_stays(self):
        for point, whole in (("log.create.written", 0), ("log.append.begin:3", 2), ("log.append.half:3", 2),
                             ("log.append.written:3", 3), ("log.sync.done", RECORDS)):
            with self.subTest(point):
                self.log.unlink(missing_ok=True)
                self.assertEqual(self.write(point), -signal.SIGKILL)
                self.assertEqual(self.records(), whole)
                self.check_goes_on(whole)

    def test_it_may_die_again_when_it_has_cut_off_what_was_torn(self):
        self.assertEqual(self.write("log.append.half:5"), -signal.SIGKILL)
        self.assertIsNotNone(self.inspect_json()["torn_tail"])
        self.assertEqual(self.write("log.cut.done"), -signal.SIGKILL)
        self.assertIsNone(self.inspect_json()["torn_tail"])
        self.check_goes_on(4)


if __name__ == "__main__":
    harness.main()
