#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs whose assemblers keep journals: killed at each of its crash points, at random moments, one process of many.

    test_journal.py MILLRACE [unittest arguments]

MILLRACE_CHAOS_SEED: that of an earlier test.
"""
import re
import resource
import signal
import sys

import cluster
import harness
from cluster import Cluster, wait_until
from test_recovery import Case as RecoveryCase

KILLS = 10


class Journals(RecoveryCase):
    def setUp(self):
        super().setUp()
        self.one, self.took = self.undisturbed()
        self.sets += ["assembler.journal=true", "assembler.instances=2", "env_reader.instances=2"]

    def segments(self, folder):
        return sorted((folder / "state" / "journal").rglob("segment-*.mrec"))

    def goes_on(self, folder, *sets):
        """To the end of the run without journals."""
        return self.goes_on_to(self.one, folder, *sets)

    def test_a_run_with_journals_is_the_run_without(self):
        folder = self.folder()
        self.goes_on(folder)
        self.assertTrue((folder / "state" / "journal" / "assembler-1" / "lock").exists())

    def test_a_run_killed_at_the_crash_points_of_the_journal_goes_on_to_the_same_end(self):
        folder = self.folder()
        file = folder / "trace"
        run = self.start(folder, env={"MILLRACE_CRASH_TRACE": str(file)})
        self.assertEqual(run.code(), 0, run.text())
        names = [name for name in file.read_text().split()
                 if name.startswith(("assembler.journal.", "assembler.safe.", "reader.safe."))]
        for name in ("begun", "append", "half", "written", "synced"):
            self.assertIn(f"assembler.journal.{name}", names)
        print(f"{len(names)} points ", end="", file=sys.stderr, flush=True)
        jobs = []
        for name in names:
            for passes in (1, self.random.randrange(2, 40)):
                folder = self.folder()
                jobs.append((f"{folder.name}, {name}:{passes}",
                             lambda f=folder, n=name, p=passes: self.killed_at_then_goes_on(f, n, p)))
        for name in ("assembler.journal.cut", "assembler.journal.restored"):  # only a later start passes them
            folder = self.folder()
            jobs.append((f"{folder.name}, {name}", lambda f=folder, n=name: self.killed_twice_then_goes_on(f, n)))
        self.all_of(jobs)

    def killed_at_then_goes_on(self, folder, name, passes):
        run = self.start(folder, env={"MILLRACE_CRASH_AT": f"{name}:{passes}"})
        self.assertIn(run.code(), (0, -signal.SIGKILL), run.text())
        if passes == 1:
            self.assertEqual(run.code(), -signal.SIGKILL, run.text())
        self.goes_on(folder)

    def killed_twice_then_goes_on(self, folder, name):
        run = self.start(folder, env={"MILLRACE_CRASH_AT": "assembler.journal.half:20"})
        self.assertEqual(run.code(), -signal.SIGKILL, run.text())
        run = self.start(folder, env={"MILLRACE_CRASH_AT": name})
        self.assertEqual(run.code(), -signal.SIGKILL, run.text())
        self.goes_on(folder)

    def test_a_run_with_journals_killed_at_random_moments_goes_on_to_the_same_end(self):
        jobs = []
        for i in range(KILLS):
            moment = 2 * self.took * (i + self.random.random()) / KILLS
            folder = self.folder()
            jobs.append((f"{folder.name}, killed after {moment:.4f} s", lambda f=folder, m=moment: self.killed(f, m)))
        self.all_of(jobs)

    def killed(self, folder, moment):
        run = self.start(folder)
        try:
            run.popen.wait(timeout=moment)
        except cluster.subprocess.TimeoutExpired:
            run.kill()
        self.goes_on(folder)

    def test_a_journal_that_must_not_grow_takes_nothing_from_the_run(self):
        folder = self.folder()
        run = self.start(folder, "source.pace=6")
        def largest():
            return max((one.stat().st_size for one in self.segments(folder)), default=0)
        # Larger than what else the run writes, its output among it.
        wait_until(lambda: run.ended() or largest() > 200_000, 60, "a journal has grown", run.text)
        hard = resource.prlimit(run.popen.pid, resource.RLIMIT_FSIZE)[1]
        resource.prlimit(run.popen.pid, resource.RLIMIT_FSIZE, (largest(), hard))
        wait_until(lambda: run.ended() or run.has_said("readers keep what they send"), 60, "it says so", run.text)
        self.assertFalse(run.ended(), run.text())
        resource.prlimit(run.popen.pid, resource.RLIMIT_FSIZE, (hard, hard))
        self.assertEqual(run.code(), 0, run.text())
        self.assert_same(folder, run.summary(), self.one)

    def test_a_damaged_journal_is_refused_with_its_place(self):
        folder = self.folder()
        run = self.start(folder, env={"MILLRACE_CRASH_AT": "assembler.journal.written:30"})
        self.assertEqual(run.code(), -signal.SIGKILL, run.text())
        segment = self.segments(folder)[0]
        data = bytearray(segment.read_bytes())
        data[300] ^= 1
        segment.write_bytes(data)
        run = self.start(folder)
        self.assertEqual(run.code(), 1, run.text())
        said = [line for line in run.text().splitlines() if line.startswith("millrace: ")]
        self.assertEqual(len(said), 1, run.text())
        self.assertIn(str(segment), said[0])
        self.assertRegex(said[0], r"offset \d+")

    def test_without_a_state_folder_there_is_no_journal(self):
        done = self.run_millrace("run", cluster.CONFIG, "--set", "assembler.journal=true")
        self.assertEqual(done.returncode, 2, done.stderr)
        self.assertIn("assembler.journal", done.stderr)


class Processes(cluster.Case):
    def system(self, *sets):
        recording = self.synth("long.mrec", "2")
        self.sets = [f"source.path={recording}", "batch.traces=20", "trainer.ranks=2", "env_reader.instances=2",
                     "source.pace=40", "deterministic=true"]
        out = Cluster(self, [*self.sets, "assembler.journal=true", *sets])
        return out.start_all()

    def test_an_assembler_that_is_killed_and_started_again_loses_nothing(self):
        system = self.system("recovery.wait=60")
        for step in (1, 3):
            system.wait_for_step(step)
            system.running["assembler-1"].kill()
            system.start("assembler", 1)
        self.assert_same(system.summary(), self.in_one_process(*self.sets))

    def test_readers_and_assemblers_are_killed_and_nothing_is_lost(self):
        system = self.system("recovery.wait=60")
        for step in (1, 3, 5):
            system.wait_for_step(step)
            for role in self.random.sample(("assembler", "env-reader"), self.random.randrange(1, 3)):
                number = self.random.randrange(2)
                system.running[f"{role}-{number}"].kill()
                system.start(role, number)
        self.assert_same(system.summary(), self.in_one_process(*self.sets))

    def test_an_assembler_that_does_not_come_back_ends_the_run_with_one_line(self):
        system = self.system("recovery.wait=2")
        system.wait_for_step(1)
        system.running["assembler-1"].kill()
        for name, process in system.running.items():
            if name == "assembler-1":
                continue
            self.assertEqual(process.exit_code(60), 1, system.story())
        said = [line for line in system.running["planner"].lines() if line.startswith("millrace: ")]
        self.assertEqual(len(said), 1, system.story())
        self.assertTrue(re.search(r"assembler-1 is gone .*: only its journal has what came of \d+ groups", said[0]), said)


if __name__ == "__main__":
    harness.main()
