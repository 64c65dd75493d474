#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""An environment whose tokens a model server scores: one that is honest, dies, comes again, stalls, lies.

    test_reference.py MILLRACE [unittest arguments]
"""
import json
import subprocess
import sys
import urllib.request
from pathlib import Path

import harness
from cluster import wait_until

SERVER = Path(__file__).resolve().parents[1] / "support" / "reference_server.py"
SAME = ("grid_hash", "ledger", "ledger_samples", "episodes", "steps", "samples", "sample_tokens", "micro_batches")
CONFIG = """
deterministic = true
batch.traces = 20
seq_len = 8192
trainer.ranks = 2
scorer.instances = 2
env_default.group_size = 8
[env.math]
algorithm = "opd"
teacher.endpoint = "{url}"
reference.retries = {retries}
reference.timeout = {timeout}
[env.debate]
group_size = 4
"""


class Server:
    """tests/support/reference_server.py."""

    def __init__(self, case, *words, port=0):
        self.popen = subprocess.Popen([sys.executable, SERVER, "--port", str(port), *words], stdout=subprocess.PIPE,
                                      stdin=subprocess.DEVNULL, text=True)
        case.addCleanup(self.end)
        self.url = self.popen.stdout.readline().strip()
        self.port = int(self.url.rpartition(":")[2])

    def asked(self):
        with urllib.request.urlopen(self.url + "/control", timeout=10) as answer:
            return json.load(answer)

    def end(self):
        self.popen.kill()
        self.popen.wait()
        self.popen.stdout.close()


class Reference(harness.Case):
    def setUp(self):
        super().setUp()
        self.recording = self.synth(scale="0.2")

    def words(self, url, retries=8, timeout=60, *more):
        config = self.dir / "run.toml"
        config.write_text(CONFIG.format(url=url, retries=retries, timeout=timeout))
        return ["run", config, "--json", self.dir / "out.json", "--set", f"source.path={self.recording}", *more]

    def run_with(self, server, *more, retries=8, timeout=60):
        done = self.run_millrace(*self.words(server.url, retries, timeout, *more))
        self.assertEqual(done.returncode, 0, done.stderr)
        return self.summary(), done

    def summary(self):
        out = json.loads((self.dir / "out.json").read_text())
        self.assertTrue(out["balanced"])
        return out

    def honest(self):
        server = Server(self)
        out, _ = self.run_with(server)
        self.assertGreater(server.asked()["completions"], 0)
        return out

    def assert_same(self, many, one):
        for key in SAME:
            self.assertEqual(many[key], one[key], key)

    def test_the_number_of_scorers_changes_nothing(self):
        one = self.honest()
        self.assertGreater(one["steps"], 0)
        for scorers in (1, 4):
            out, _ = self.run_with(Server(self), "--set", f"scorer.instances={scorers}")
            self.assert_same(out, one)

    def test_a_server_that_dies_and_comes_again_changes_nothing(self):
        one = self.honest()
        server = Server(self, "--die-after", "20")
        run = subprocess.Popen([harness.program, *map(str, self.words(server.url))], stdin=subprocess.DEVNULL,
                               stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        self.addCleanup(run.kill)
        wait_until(lambda: server.popen.poll() is not None, harness.DEADLINE_S, "the server dies")
        again = Server(self, port=server.port)
        _, errors = run.communicate(timeout=harness.DEADLINE_S)
        self.assertEqual(run.returncode, 0, errors)
        self.assertGreater(again.asked()["completions"], 0)
        self.assert_same(self.summary(), one)

    def test_a_server_that_fails_for_a_while_changes_nothing(self):
        one = self.honest()
        for behaviour, timeout in (("error:3", 60), ("busy:3", 60), ("close:3", 60), ("cut:3", 60), ("stall:2", 0.5),
                                   ("stall_in_answer:2", 0.5)):
            with self.subTest(behaviour):
                out, _ = self.run_with(Server(self, "--behave", behaviour), timeout=timeout)
                self.assert_same(out, one)

    def test_a_server_that_is_gone_ends_the_run_and_is_named(self):
        server = Server(self)
        server.end()
        done = self.run_millrace(*self.words(server.url, 1))
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertIn(f"{server.url}: given up after 2 tries", done.stderr)

    def test_so_does_one_that_stalls_or_refuses_everything(self):
        for behaviour, code, said in (("stall", 1, "given up after 2 tries"), ("refuse", 2, "the server answers 404")):
            with self.subTest(behaviour):
                server = Server(self, "--behave", behaviour)
                done = self.run_millrace(*self.words(server.url, 1, 0.3))
                self.assertEqual(done.returncode, code, done.stderr)
                self.assertIn(server.url, done.stderr)
                self.assertIn(said, done.stderr)

    def test_a_lie_costs_the_group_that_it_is_about_and_is_said(self):
        one = self.honest()
        for lie in ("short", "long", "null", "nan", "infinite", "logit", "other_prompt", "other_id", "twice",
                    "trailing", "html", "huge"):
            with self.subTest(lie):
                out, done = self.run_with(Server(self, "--behave", f"{lie}:1"))
                lost = out["ledger"]["rejected"] - one["ledger"]["rejected"]
                self.assertIn(lost, range(1, 9))  # those of the group that had not failed before
                self.assertEqual(done.stderr.count(" ends outside a step: http://127.0.0.1:"), 1, done.stderr)


if __name__ == "__main__":
    harness.main()
