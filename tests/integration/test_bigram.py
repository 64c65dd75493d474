#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A policy that learns, live and over its recording: the whole chain from sampling to parameters.

    test_bigram.py MILLRACE EXAMPLE_POLICY [unittest arguments]
"""
import json
import os
import sys
from pathlib import Path

import harness

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "tools"))
from compare_parameters import distance  # noqa: E402

CONFIG = ROOT / "config" / "bigram.toml"
STEPS = 60
CHANCE = 1 / 16
example_policy = ""


class Case(harness.Case):
    def start(self, *args, sets=(), code=0):
        """A run of the config; its summary."""
        out = self.dir / "summary.json"
        words = [word for key in sets for word in ("--set", key)]
        done = self.run_millrace("run", CONFIG, "--json", out, *words, *args)
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        return json.loads(out.read_text())

    def metrics(self, name="bigram-metrics.jsonl"):
        def refuse(word):
            raise ValueError(word)  # NaN, Infinity: Python would take them
        return [json.loads(line, parse_constant=refuse) for line in (self.dir / name).read_text().splitlines()]

    def recorded(self, steps=STEPS):
        """A recording of what a live run sampled."""
        self.start("--steps", steps, sets=["source.record=live.mrec"])
        return self.dir / "live.mrec"

    def replay(self, name, *args, sets=()):
        """The recording again, deterministic, in a run of its own."""
        return self.start("--dump", name, *args, sets=[
            "source.env=none", "source.path=live.mrec", "deterministic=true", "planner.max_staleness=off",
            f"trainer.metrics={name}.jsonl", *sets])


class Live(Case):
    def test_the_reward_rises_from_chance_and_staleness_stays_within_its_bound(self):
        summary = self.start("--steps", STEPS)
        self.assertTrue(summary["balanced"])
        lines = self.metrics()
        self.assertEqual([line["step"] for line in lines], list(range(1, STEPS + 1)))
        rewards = [line["all"]["reward"] for line in lines]
        self.assertLess(rewards[0], 2 * CHANCE)
        self.assertGreater(sum(rewards[-5:]) / 5, 0.9, rewards)
        self.assertLess(lines[-1]["all"]["entropy"], lines[0]["all"]["entropy"] / 2)
        self.assertLessEqual(max(line["staleness"]["max"] for line in lines), 4)
        self.assertGreater(max(line["staleness"]["max"] for line in lines), 0)  # it does run ahead
        for line in lines:
            self.assertEqual(line["non_finite"], [])
            self.assertEqual(line["all"]["masked_tokens"], line["env"]["bigram"]["masked_tokens"])

    def test_in_processes_of_their_own_it_is_refused(self):
        done = self.run_millrace("actor", "directory,planner,env-reader", "--config", CONFIG)
        self.assert_fails(done, 2, "start all roles in one, with `millrace run`")


class Recorded(Case):
    def test_one_two_and_four_ranks_end_with_the_same_parameters(self):
        self.recorded()
        steps = self.replay("1", sets=["trainer.ranks=1"])["steps"]
        self.assertGreater(steps, STEPS // 2)
        for ranks in ("2", "4"):
            self.assertEqual(self.replay(ranks, sets=[f"trainer.ranks={ranks}"])["steps"], steps)
            self.assertLessEqual(distance(self.dir / "1", self.dir / ranks, steps), 1e-6)
            self.assertGreater(distance(self.dir / "1", self.dir / ranks, steps, 1), 0.1)  # it did learn
        self.assertGreater(self.metrics("1.jsonl")[-1]["all"]["importance_ratio_max"], 0)

    def test_a_run_that_goes_on_from_its_checkpoint_ends_with_the_same_parameters(self):
        self.recorded(20)
        steps = self.replay("whole")["steps"]
        keep = ["state=s", "trainer.checkpoint_every=4", "run.id=bigram"]
        self.replay("first", "--steps", 10, sets=keep)
        self.replay("second", sets=keep)
        self.assertEqual(distance(self.dir / "whole", self.dir / "second", steps), 0)

    def test_a_checkpoint_whose_files_changed_is_refused_by_name(self):
        self.recorded(8)
        keep = ["state=s", "trainer.checkpoint_every=4", "run.id=bigram"]
        self.replay("first", "--steps", 4, sets=keep)
        file = next((self.dir / "s" / "checkpoints").rglob("rank-1/parameters.safetensors"))
        raw = bytearray(file.read_bytes())
        raw[-1] ^= 1
        file.write_bytes(raw)
        done = self.run_millrace("run", CONFIG, *[w for key in [
            "source.env=none", "source.path=live.mrec", "deterministic=true", "planner.max_staleness=off", *keep]
            for w in ("--set", key)])
        self.assertEqual(done.returncode, 1, done.stdout + done.stderr)
        self.assertIn("rank-1/parameters.safetensors", done.stderr)
        self.assertIn("do not fit their checksum", done.stderr)

    def test_a_policy_in_a_library_trains_and_is_named_when_it_fails(self):
        self.recorded(8)
        library = os.path.relpath(example_policy, self.dir)
        sets = [f"trainer.policy={library}", "trainer.policy_options=16 20"]
        self.replay("library", sets=sets)
        lines = self.metrics("library.jsonl")
        self.assertIsNotNone(lines[-1]["all"]["loss"])
        self.assertTrue((self.dir / "library/step-000001/parameters/unigram.txt").exists())
        done = self.run_millrace("run", CONFIG, *[w for key in [
            "source.env=none", "source.path=live.mrec", f"trainer.policy={library}", "trainer.policy_options=4 20"]
            for w in ("--set", key)])
        self.assertEqual(done.returncode, 1)
        self.assertIn("forward: a token id is not in the vocabulary", done.stderr)

    def test_exports_hold_every_trained_token_once_and_are_marked_stable(self):
        self.recorded(8)
        self.replay("d", "--export", "tokens")
        lines = self.metrics("d.jsonl")
        folders = sorted((self.dir / "tokens").iterdir())
        self.assertEqual(len(folders), len(lines))
        for folder, line in zip(folders, lines):
            self.assertTrue((folder / "STABLE").exists())
            records = [json.loads(text) for rank in (0, 1)
                       for text in (folder / f"rank-{rank}.jsonl").read_text().splitlines()]
            self.assertEqual(sum(sum(record["loss_mask"]) for record in records), line["all"]["masked_tokens"])
            mean = sum(e for r in records for e, m in zip(r["entropy"], r["loss_mask"]) if m)
            self.assertAlmostEqual(mean / line["all"]["masked_tokens"], line["all"]["entropy"], places=5)
        done = self.run_millrace("run", CONFIG, "--export", "tokens", "--steps", "1")
        self.assert_fails(done, 2, "holds the steps of another run")


if __name__ == "__main__":
    example_policy = os.path.abspath(sys.argv.pop(2))
    harness.main()
