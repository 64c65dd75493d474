#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Five environments, each scored by another algorithm, one of them with a state: the result depends on nobody's timing.

    test_algorithms.py MILLRACE [unittest arguments]
"""
import json
import signal
from pathlib import Path

import cluster
import harness
from cluster import Cluster, wait_until

CONFIG = Path(__file__).resolve().parents[2] / "config" / "five-algorithms.toml"
SAME = ("grid_hash", "ledger", "ledger_samples", "episodes", "steps", "samples", "sample_tokens", "micro_batches")


class Algorithms(cluster.Case):
    def setUp(self):
        super().setUp()
        self.recording = self.synth(preset="five-algorithms", scale="0.5")
        self.sets = [f"source.path={self.recording}"]

    def run_config(self, *words):
        out = self.dir / "summary.json"
        sets = [word for each in self.sets for word in ("--set", each)]
        done = self.run_millrace("run", CONFIG, "--json", out, *sets, *words)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        summary = json.loads(out.read_text())
        self.assertTrue(summary["balanced"], done.stdout)
        return summary

    def assert_same(self, many, one):
        self.assertTrue(many["balanced"])
        for key in SAME:
            self.assertEqual(many[key], one[key], key)

    def test_every_kind_of_end_is_in_a_ledger_that_balances(self):
        summary = self.run_config()
        ledger = summary["ledger"]
        self.assertEqual(sum(ledger.values()), summary["episodes"])
        for state in ("trained", "gated", "errored", "cancelled", "stale"):
            self.assertGreater(ledger[state], 0, state)
        self.assertGreater(summary["late"], 0)

    def test_neither_the_number_of_scorers_nor_the_order_of_events_changes_the_result(self):
        one = self.run_config("--set", "scorer.instances=1")
        for scorers in (2, 4):
            self.assert_same(self.run_config("--set", f"scorer.instances={scorers}"), one)
        for seed in range(1, 4):
            self.assert_same(self.run_config("--schedule-seed", seed, "--set", "scorer.instances=3"), one)

    def as_processes(self, **crash):
        """With state, and a point at which the scorer or the planner dies, or at which the planner `stops`."""
        self.sets += ["trainer.checkpoint_every=3", "steps.keep=durable", "recovery.wait=60"]
        one = self.run_config()
        system = Cluster(self, [*self.sets, "source.pace=30"], config=CONFIG)
        for role, count in (("env-reader", 1), ("assembler", 2), ("packer", 2), ("trainer", 2)):
            for number in range(count):
                system.start(role, number)
        system.start("scorer", 0, env={"MILLRACE_CRASH_AT": crash["scorer"]} if "scorer" in crash else None)
        point = {f"MILLRACE_{word}_AT": crash[role] for word, role in (("CRASH", "planner"), ("STOP", "stops"))
                 if role in crash}
        system.start("planner", 0, env=point or None)
        return one, system

    def dies_and_comes_again(self, system, role):
        died = system.running[f"{role}-0" if role == "scorer" else role]
        wait_until(died.ended, harness.DEADLINE_S, f"{role} dies", system.story)
        self.assertEqual(died.popen.returncode, -signal.SIGKILL, system.story())
        system.start(role, 0)

    def test_the_scorer_of_a_state_dies_after_its_answer_is_sent_and_before_it_is_logged(self):
        one, system = self.as_processes(stops="planner.scored.append:3")
        planner, scorer = system.running["planner"], system.running["scorer-0"]
        wait_until(lambda: self.state_of(planner) == "T", harness.DEADLINE_S, "the planner stops", system.story)
        scorer.popen.send_signal(signal.SIGKILL)
        scorer.popen.wait()
        planner.popen.send_signal(signal.SIGCONT)
        self.dies_and_comes_again(system, "scorer")
        self.assert_same(system.summary(), one)

    @staticmethod
    def state_of(process):
        """As /proc has it: "R", "S", "T" (stopped)."""
        return Path(f"/proc/{process.popen.pid}/stat").read_text().rpartition(")")[2].split()[0]

    def test_the_scorer_of_a_state_dies_before_its_answer_is_sent(self):
        one, system = self.as_processes(scorer="scorer.answer.send:3")
        self.dies_and_comes_again(system, "scorer")
        self.assert_same(system.summary(), one)

    def test_the_planner_dies_before_an_answer_is_logged(self):
        one, system = self.as_processes(planner="planner.scored.append:3")
        self.dies_and_comes_again(system, "planner")
        self.assert_same(system.summary(), one)

    def test_the_planner_dies_when_an_answer_is_logged_and_not_used(self):
        one, system = self.as_processes(planner="planner.scored.written:3")
        self.dies_and_comes_again(system, "planner")
        self.assert_same(system.summary(), one)


if __name__ == "__main__":
    harness.main()
