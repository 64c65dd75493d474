#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The tools that attach to a running system: status, why, top and drain, and the watch that says why nothing moves.

    test_attach.py MILLRACE [unittest arguments]
"""
import json
import os
import signal
import subprocess

import cluster
import harness
from cluster import wait_until


class Run(harness.Case):
    """A run in one process, at its control socket. Its source is so slow that it waits for it."""

    def start(self, *sets):
        config = self.dir / "run.toml"
        config.write_text('run.id = "slow"\nsource.preset = "quickstart"\nsource.pace = 0.2\nbatch.traces = 64\n'
                          f'state = "{self.dir / "state"}"\ntrainer.ranks = 2\n')
        words = [harness.program, "run", str(config)]
        for each in sets:
            words += ["--set", each]
        run = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                               text=True, cwd=self.dir)
        self.addCleanup(run.communicate)
        self.addCleanup(run.kill)
        return run

    def tool(self, *words):
        return self.run_millrace(*words, "--connect", f"ipc://{self.dir / 'state' / 'control.sock'}")

    def start_and_wait(self):
        run = self.start()
        wait_until(lambda: self.tool("why").returncode == 0, 30, "the run answers")
        return run

    def test_status_shows_the_process_of_the_run(self):
        run = self.start_and_wait()
        answer = json.loads(self.tool("status", "--json").stdout)
        self.assertEqual(answer["run"], "slow")
        [process] = answer["processes"]
        self.assertEqual((process["state"], process["status"]["pid"]), ("alive", run.pid))
        roles = {each["role"] for each in process["actors"]}
        self.assertLessEqual({"directory", "env-reader", "assembler", "scorer", "planner", "packer", "trainer"}, roles)
        self.assertLess(process["status"]["held"], process["status"]["limit"])
        text = self.tool("status").stdout
        self.assertIn("run slow: 1 alive\n", text)
        self.assertIn(f":{run.pid}  alive", text)

    def test_why_leads_from_the_trainers_to_the_source(self):
        self.start_and_wait()
        def chain():
            lines = self.tool("why").stdout.splitlines()
            return lines if lines and "source.pace" in lines[-1] else None
        lines = wait_until(chain, 30, "the reader waits for its pace", lambda: self.tool("why").stdout)
        self.assertRegex(lines[0], r"^trainer-[01] and 1 other wait for its first step \(")
        self.assertRegex(lines[1], r"^planner has \d+/64 traces of step 1 \(")
        self.assertRegex(lines[-1], r"^env-reader-0 waits for its pace \(source\.pace\) \(")
        answer = json.loads(self.tool("why", "--json").stdout)
        self.assertEqual(answer["chains"][0]["links"][1]["who"], "planner")

    def test_top_shows_both(self):
        self.start_and_wait()
        text = self.tool("top", "--once").stdout
        self.assertIn("run slow: 1 alive\n", text)
        self.assertIn("\nplanner has ", text)
        self.assertNotIn("\x1b", text)

    def test_a_config_finds_the_control_socket(self):
        self.start_and_wait()
        self.assert_succeeds(self.run_millrace("why", "--config", "run.toml"))

    def test_the_only_process_is_not_drained(self):
        self.start_and_wait()
        self.assert_fails(self.tool("drain", "scorer-0"), 1, "cannot be drained")
        self.assert_fails(self.tool("drain", "scorer0"), 1, "did you mean 'scorer-0'?")

    def test_nobody_answers_after_the_end(self):
        run = self.start_and_wait()
        run.send_signal(signal.SIGINT)
        run.wait(timeout=60)
        self.assert_fails(self.tool("status"), 1, "control.sock")
        self.assertFalse(os.path.exists(self.dir / "state" / "control.sock"))

    def test_no_progress_ends_the_run_if_it_is_told_to(self):
        run = self.start("progress.limit=3", "progress.stop=true")
        said = run.communicate(timeout=60)[1]
        self.assertEqual(run.returncode, 1, said)
        self.assertRegex(said, r"no step was trained for .*planner has \d+/64 traces of step 1 ")


class Processes(cluster.Case):
    def test_why_ends_at_the_process_that_hangs(self):
        run = cluster.Cluster(self, ["scorer.instances=1", "trainer.ranks=1", "deterministic=true"], timeout=60)
        run.start("scorer", 0)
        wait_until(lambda: "scorer-0" in run.status(), 30, "the scorer registers", run.story)
        run.running["scorer-0"].send(signal.SIGSTOP)
        for role in ("env-reader", "assembler", "packer", "trainer", "planner"):
            run.start(role, 0)
        def found():
            lines = run.tool("why", check=False).stdout.splitlines()
            return lines if lines and "scorer-0" in lines[-1] and "heard of" in lines[-1] else None
        lines = wait_until(found, 60, "the chain ends at the scorer",
                           lambda: run.tool("why").stdout + run.story())
        self.assertRegex(lines[0], r"^trainer-0 waits for its first step \(")
        self.assertTrue(run.status()["scorer-0"]["silent"])
        self.assertIn(" !", run.tool("status").stdout)
        run.running["scorer-0"].send(signal.SIGCONT)
        self.assertEqual(run.summary()["ledger"].get("held", 0), 0)


if __name__ == "__main__":
    harness.main()
