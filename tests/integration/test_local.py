#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""launch/local.sh: what it starts, how it ends, and what it leaves. With a stand-in for the program.

    test_local.py MILLRACE [unittest arguments]
"""
import os
import signal
import subprocess
import time
import unittest
from pathlib import Path

import harness

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = ROOT / "launch" / "local.sh"
FAKE = ROOT / "tests" / "integration" / "fake_millrace.py"


class Case(harness.Case):
    def setUp(self):
        super().setUp()
        self.calls = self.dir / "calls"
        self.calls.mkdir()
        self.temporary = self.dir / "tmp"
        self.temporary.mkdir()
        (self.dir / "c.toml").touch()

    def environment(self, **fake):
        return {**os.environ, "MILLRACE": str(FAKE), "FAKE_CALLS": str(self.calls), "TMPDIR": str(self.temporary),
                "MILLRACE_DEADLINE": "20", **{f"FAKE_{k.upper()}": v for k, v in fake.items()}}

    def local(self, *args, deadline="20", **fake):
        return subprocess.run([SCRIPT, *args], stdin=subprocess.DEVNULL, capture_output=True, text=True,
                              timeout=harness.DEADLINE_S, cwd=self.dir,
                              env={**self.environment(**fake), "MILLRACE_DEADLINE": deadline})

    def begun(self, *args, **fake):
        """The script, once its planner waits."""
        script = subprocess.Popen([SCRIPT, *args], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                  stderr=subprocess.PIPE, text=True, cwd=self.dir,
                                  env=self.environment(waits="1", **fake))
        self.addCleanup(script.kill)
        self.until((self.calls / "waiting").exists)
        return script

    def until(self, condition):
        end = time.monotonic() + harness.DEADLINE_S
        while not condition():
            self.assertLess(time.monotonic(), end, "nothing came")
            time.sleep(0.01)

    def started(self):
        return sorted(each.name for each in self.calls.iterdir()
                      if each.name not in ("ended", "signals", "starts", "waiting"))

    def times_started(self, name):
        return (self.calls / "starts").read_text().split("\n").count(name)

    def arguments(self, name):
        return (self.calls / name).read_text().split()

    def assert_nothing_is_left(self):
        """No process still has the folder of the calls in its environment."""
        mark = f"FAKE_CALLS={self.calls}".encode()

        def lives(process):
            try:
                return mark in (process / "environ").read_bytes().split(b"\0")
            except OSError:
                return False
        self.until(lambda: not any(lives(each) for each in Path("/proc").iterdir() if each.name.isdigit()))


class Starts(Case):
    def test_every_role_is_a_process(self):
        everyone = ["assembler-0", "directory", "env-reader-0", "packer-0", "planner", "scorer-0", "trainer-0"]
        done = self.local("c.toml", expected=" ".join(everyone))
        self.assertEqual((done.returncode, done.stdout), (0, "planner: begins\nplanner: ends\n"), done.stderr)
        self.assertEqual(self.started(), everyone)

    def test_scale_says_how_many_and_tells_all_of_them(self):
        done = self.local("c.toml", "--scale", "scorer=3", "--scale", "env-reader=2", "--scale", "trainer=4",
                          expected="scorer-2 env-reader-1 trainer-3")
        self.assertEqual(done.returncode, 0, done.stderr)
        for name in ("scorer-0", "scorer-1", "scorer-2", "env-reader-1", "trainer-3"):
            self.assertIn(name, self.started())
        self.assertEqual(len(self.started()), 13)
        for name in ("planner", "packer-0", "directory"):
            for text in ("scorer.instances=3", "env_reader.instances=2", "trainer.ranks=4"):
                self.assertIn(text, self.arguments(name))

    def test_the_config_says_how_many_otherwise(self):
        done = self.local("c.toml", "--set", "packer.instances=2", expected="packer-1")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("packer-1", self.started())

    def test_all_look_for_the_directory_where_it_has_bound(self):
        self.assertEqual(self.local("c.toml", expected="scorer-0").returncode, 0)
        self.assertIn("directory.endpoint=tcp://127.0.0.1:*", self.arguments("directory"))
        for name in ("planner", "scorer-0"):
            self.assertIn("directory.endpoint=tcp://127.0.0.1:4711", self.arguments(name))

    def test_a_directory_endpoint_that_is_given_is_kept(self):
        self.assertEqual(self.local("c.toml", "--set", "directory.endpoint=tcp://127.0.0.1:99").returncode, 0)
        self.assertIn("directory.endpoint=tcp://127.0.0.1:99", self.arguments("directory"))
        self.assertNotIn("directory.endpoint=tcp://127.0.0.1:*", self.arguments("directory"))

    def test_ipc_gives_each_process_a_socket_of_its_own_and_removes_them(self):
        done = self.local("c.toml", "--scale", "scorer=2", "--set", "link.bind=ipc", expected="scorer-1")
        self.assertEqual(done.returncode, 0, done.stderr)
        binds = [word for name in self.started() for word in self.arguments(name) if word.startswith("link.bind=")]
        self.assertEqual(len(set(binds)), 8)
        self.assertTrue(all(each.startswith("link.bind=ipc:///") for each in binds), binds)
        self.assertTrue(any(each.startswith("directory.endpoint=ipc:///") for each in self.arguments("planner")))
        self.assertEqual(os.listdir(self.temporary), [])

    def test_colocated_is_one_process_with_every_role(self):
        done = self.local("c.toml", "--colocated", "--scale", "scorer=2", "--json", "q.json")
        self.assertEqual((done.returncode, done.stdout), (0, "planner: begins\nplanner: ends\n"), done.stderr)
        [name] = self.started()
        self.assertIn("scorer.instances=2", self.arguments(name))
        self.assertTrue((self.dir / "q.json").exists())

    def test_the_planner_writes_the_summary(self):
        self.assertEqual(self.local("c.toml", "--json", "q.json").returncode, 0)
        self.assertTrue((self.dir / "q.json").exists())


class Misuse(Case):
    def test_bad_arguments_are_one_line_and_start_nothing(self):
        for args, part in (([], "no CONFIG"), (["c.toml", "d.toml"], "one CONFIG"), (["c.toml", "--fast"], "--fast"),
                           (["c.toml", "--scale"], "--scale"), (["c.toml", "--scale", "scorer"], "ROLE=N"),
                           (["c.toml", "--scale", "scorer=0"], "ROLE=N"), (["c.toml", "--scale", "planner=2"], "planner"),
                           (["c.toml", "--scale", "scor=2"], "scor"), (["c.toml", "--scale", "or=2"], "'or=2'")):
            done = self.local(*args)
            self.assertEqual((done.returncode, done.stderr.count("\n")), (2, 1), done.stderr)
            self.assertIn(part, done.stderr)
        self.assertEqual(self.started(), [])

    def test_a_config_that_does_not_load_is_told_by_the_program_alone(self):
        done = self.local("bad.toml")
        self.assertEqual((done.returncode, done.stderr), (2, "millrace: bad config\n"))
        self.assertEqual(self.started(), [])

    def test_a_program_that_is_not_built_is_told(self):
        done = subprocess.run([SCRIPT, "c.toml"], capture_output=True, text=True, cwd=self.dir,
                              env={**os.environ, "MILLRACE": "none"}, check=False)
        self.assertEqual(done.returncode, 2)
        self.assertIn("none is not there", done.stderr)


class Ends(Case):
    def test_the_exit_code_is_the_planners(self):
        done = self.local("c.toml", code="7")
        self.assertEqual(done.returncode, 7, done.stderr)
        self.assertIn("exit code 7", done.stderr)

    def test_logs_of_a_good_run_without_a_state_folder_are_removed(self):
        self.assertEqual(self.local("c.toml").returncode, 0)
        self.assertEqual(os.listdir(self.temporary), [])

    def test_logs_stand_in_the_state_folder(self):
        self.assertEqual(self.local("c.toml", "--set", "state=st", expected="scorer-0").returncode, 0)
        [run] = (self.dir / "st" / "logs").iterdir()
        self.assertTrue((run / "scorer-0.log").exists())

    def test_a_process_that_fails_is_named_with_the_end_of_its_log(self):
        done = self.local("c.toml", code="1", fails="trainer-0", expected="trainer-0")
        self.assertEqual(done.returncode, 1)
        self.assertIn("trainer-0 failed (exit code 1)", done.stderr)
        self.assertIn("millrace: trainer-0 cannot go on", done.stderr)
        self.assertNotEqual(os.listdir(self.temporary), [])

    def test_a_lost_scorer_of_two_does_not_end_the_run(self):
        done = self.local("c.toml", "--scale", "scorer=2", deadline="4", fails="scorer-1", expected="scorer-1 scorer-0")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("scorer-1 failed", done.stderr)

    def test_a_planner_that_waits_for_what_has_failed_is_told_to_end(self):
        for name in ("trainer-0", "scorer-0", "env-reader-0"):
            for each in self.calls.iterdir():
                each.unlink()
            done = self.local("c.toml", deadline="4", fails=name, waits="1")
            self.assertEqual(done.returncode, 1, done.stderr)
            self.assertIn(f"{name} failed", done.stderr)
            self.assertEqual((self.calls / "signals").read_text(), "SIGTERM\n")

    def test_a_directory_that_fails_is_told_and_nothing_else_starts(self):
        done = self.local("c.toml", fails="directory")
        self.assertEqual(done.returncode, 1)
        self.assertIn("directory failed", done.stderr)
        self.assertEqual(self.started(), ["directory"])

    def test_what_does_not_end_after_the_planner_is_killed_and_named(self):
        done = self.local("c.toml", deadline="5", hangs="packer-0", expected="packer-0")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("packer-0 did not end within 5 s", done.stderr)
        self.assert_nothing_is_left()


class Restarts(Case):
    def restarted(self, *args, deadline="60", **fake):
        return self.local("c.toml", "--set", "state=st", "--restart", *args, deadline=deadline, **fake)

    def assert_told(self, done, *lines):
        said = done.stderr.splitlines()
        for line in lines:
            self.assertIn("local: " + line, said)

    def test_what_a_signal_a_failure_or_a_wish_ends_comes_again_under_its_name(self):
        dies = "scorer-0:9:2 trainer-0:x75:1 packer-0:x1:1"
        done = self.restarted(dies=dies, expected="scorer-0:3 trainer-0:2 packer-0:2")
        self.assertEqual((done.returncode, done.stdout), (0, "planner: begins\nplanner: ends\n"), done.stderr)
        self.assert_told(done, "scorer-0 ended (signal 9); started again (restart 1)",
                         "scorer-0 ended (signal 9); started again (restart 2)",
                         "trainer-0 ended (exit code 75); started again (restart 1)",
                         "packer-0 ended (exit code 1); started again (restart 1)")
        self.assertEqual(done.stderr.count("started again"), 4, done.stderr)
        self.assertTrue(all(line.startswith("local: ") for line in done.stderr.splitlines()), done.stderr)
        self.assertNotIn("failed", done.stderr)
        self.assertEqual(self.times_started("env-reader-0"), 1)

    def test_the_planner_comes_again_with_what_it_was_given(self):
        done = self.restarted("--json", "q.json", "--scale", "scorer=2", dies="planner:9:1")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(self.times_started("planner"), 2)
        for word in ("--json", "q.json", "scorer.instances=2", "directory.endpoint=tcp://127.0.0.1:4711"):
            self.assertIn(word, self.arguments("planner"))

    def test_a_planner_that_is_lost_at_the_very_end_gets_all_others_again(self):
        self.lose_the_planner_at_the_very_end()

    def test_so_it_does_when_they_take_longer_to_end_than_it_takes_to_come_again(self):
        self.lose_the_planner_at_the_very_end(lingers="1")

    def lose_the_planner_at_the_very_end(self, **fake):
        done = self.restarted(late="1", expected="directory scorer-0 trainer-0 env-reader-0 packer-0 assembler-0",
                              **fake)
        self.assertEqual(done.returncode, 0, done.stderr)
        for name in ("planner", "scorer-0", "trainer-0", "env-reader-0"):
            self.assertEqual(self.times_started(name), 2, name)
        self.assert_told(done, "planner ended (signal 9); started again (restart 1)")
        self.assertEqual(done.stderr.count("started again"), 1, done.stderr)

    def test_the_directory_comes_again_at_the_endpoint_that_it_had(self):
        done = self.restarted(dies="directory:9:1", expected="directory:2")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("directory.endpoint=tcp://127.0.0.1:4711", self.arguments("directory"))
        self.assertNotIn("directory.endpoint=tcp://127.0.0.1:*", self.arguments("directory"))
        self.assertIn("--endpoint-file", self.arguments("directory"))

    def test_the_one_process_comes_again(self):
        everything = "directory,env-reader,assembler,scorer,planner,packer,trainer"
        done = self.restarted("--colocated", dies=f"{everything}:9:2")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assert_told(done, "all ended (signal 9); started again (restart 2)")
        self.assertEqual(self.times_started(everything), 3)

    def test_all_starts_of_a_process_have_one_log(self):
        done = self.restarted(dies="scorer-0:9:2", last_words="so it goes", expected="scorer-0:3")
        self.assertEqual(done.returncode, 0, done.stderr)
        [run] = (self.dir / "st" / "logs").iterdir()
        self.assertEqual((run / "scorer-0.log").read_text(), "millrace: so it goes\n" * 2)

    def test_all_wait_for_who_is_lost_as_long_as_the_config_says_or_a_minute(self):
        for args, wanted in ((["c.toml"], "recovery.wait=60"), (["waits.toml"], None),
                             (["c.toml", "--set", "recovery.wait=0"], "recovery.wait=0")):
            (self.dir / "waits.toml").touch()
            for each in self.calls.iterdir():
                each.unlink()
            done = self.local(*args, "--restart", "--set", "state=st")
            self.assertEqual(done.returncode, 0, done.stderr)
            said = [word for word in self.arguments("planner") if word.startswith("recovery.wait")]
            self.assertEqual(said, [wanted] if wanted else [])

    def test_without_it_nothing_is_set_and_nothing_comes_again(self):
        done = self.local("c.toml", "--scale", "scorer=2", dies="scorer-0:9:1", expected="scorer-0 scorer-1")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(self.times_started("scorer-0"), 1)
        self.assertFalse([word for word in self.arguments("planner") if word.startswith("recovery.wait")])

    def test_it_needs_a_state_folder(self):
        done = self.local("c.toml", "--restart")
        self.assertEqual((done.returncode, done.stderr.count("\n")), (2, 1), done.stderr)
        self.assertIn("state=FOLDER", done.stderr)
        self.assertEqual(self.started(), [])

    def test_bad_use_is_not_tried_again(self):
        done = self.restarted(dies="planner:x2:9")
        self.assertEqual(done.returncode, 2, done.stderr)
        self.assertEqual(self.times_started("planner"), 1)
        self.assert_nothing_is_left()

    def test_one_of_two_that_is_used_badly_stays_away_and_the_run_goes_on(self):
        done = self.restarted("--scale", "scorer=2", dies="scorer-1:x2:9", expected="scorer-0 scorer-1")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("scorer-1 failed (exit code 2)", done.stderr)
        self.assertEqual(self.times_started("scorer-1"), 1)

    def test_a_folder_in_use_a_run_under_another_planner_and_a_damaged_folder_end_all(self):
        for words, times in (("'st/planner.log' is locked: another process has it open", 1),
                             ("another planner leads this run: folder 4711", 1),
                             ("'st/planner.log' is not a planner's log", 2)):
            (self.calls / "starts").unlink(missing_ok=True)
            done = self.restarted(dies="planner:x1:9", last_words=words)
            self.assertEqual(done.returncode, 1, done.stderr)
            self.assertIn(f"millrace: {words}", done.stderr.splitlines())
            self.assertEqual(self.times_started("planner"), times)
            self.assert_nothing_is_left()

    def test_a_run_that_ends_with_1_in_order_is_not_run_again(self):
        done = self.restarted(code="1")
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertEqual(self.times_started("planner"), 1)

    def test_who_dies_again_and_again_is_given_up_and_all_ends(self):
        environment = {**self.environment(dies="scorer-0:9:99", waits="1"), "MILLRACE_RESTARTS": "2"}
        done = subprocess.run([SCRIPT, "c.toml", "--set", "state=st", "--restart"], stdin=subprocess.DEVNULL,
                              capture_output=True, text=True, timeout=harness.DEADLINE_S, cwd=self.dir, env=environment,
                              check=False)
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertIn("scorer-0 ended 3 times within 30 s of its start; it is given up", done.stderr)
        self.assertEqual(self.times_started("scorer-0"), 3)
        self.assertEqual((self.calls / "signals").read_text(), "SIGTERM\n")
        self.assert_nothing_is_left()

    def test_after_a_signal_nothing_comes_again(self):
        for number in (signal.SIGINT, signal.SIGTERM):
            for each in self.calls.iterdir():
                each.unlink()
            script = self.begun("c.toml", "--restart", "--set", "state=st")
            script.send_signal(number)
            _, said = script.communicate(timeout=harness.DEADLINE_S)
            self.assertEqual(script.returncode, 1)
            self.assertNotIn("started again", said)
            self.assertEqual((self.calls / "signals").read_text(), number.name + "\n")
            self.assert_nothing_is_left()


class Signals(Case):
    def test_a_signal_is_passed_on_to_the_planner_once(self):
        for number in (signal.SIGINT, signal.SIGTERM):
            for each in self.calls.iterdir():
                each.unlink()
            script = self.begun("c.toml")
            script.send_signal(number)
            script.communicate(timeout=harness.DEADLINE_S)
            self.assertEqual(script.returncode, 1)
            self.assertEqual((self.calls / "signals").read_text(), number.name + "\n")
            self.assert_nothing_is_left()

    def test_a_second_signal_kills(self):
        script = self.begun("c.toml", stubborn="1")
        script.send_signal(signal.SIGINT)
        self.until((self.calls / "signals").exists)
        script.send_signal(signal.SIGINT)
        script.communicate(timeout=harness.DEADLINE_S)
        self.assertEqual(script.returncode, 128 + signal.SIGKILL)
        self.assert_nothing_is_left()

    def test_processes_do_not_outlive_a_script_that_is_killed(self):
        script = self.begun("c.toml")
        script.kill()
        script.communicate(timeout=harness.DEADLINE_S)
        self.assert_nothing_is_left()


class Lint(unittest.TestCase):
    def test_shellcheck_finds_nothing(self):
        try:
            done = subprocess.run(["shellcheck", *sorted((ROOT / "launch").glob("*.sh")),
                                   ROOT / "tests" / "chaos" / "run.sh"], capture_output=True, text=True,
                                  check=False)
        except FileNotFoundError:
            self.skipTest("no shellcheck; launch/setup.sh --tests installs it")
        self.assertEqual((done.returncode, done.stdout), (0, ""))


if __name__ == "__main__":
    harness.main()
