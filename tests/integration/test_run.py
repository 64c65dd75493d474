#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Whole runs: the ledger, determinism, dumps, imported files, signals.

    test_run.py MILLRACE [unittest arguments]
"""
import json
import os
import pty
import random
import signal
import subprocess
import sys
from pathlib import Path

import harness
from recording import interleave

ROOT = Path(__file__).resolve().parents[2]
QUICKSTART = ROOT / "config" / "quickstart.toml"


def rollout(slot, reward, tokens, task=0, logprob=-0.25):
    """One line as NeMo Gym writes it: a prompt of 4 ids and `tokens` sampled ones."""
    message = {"type": "message", "role": "assistant", "content": [], "id": "m", "status": "completed",
               "prompt_token_ids": [1, 2, 3, 4],
               "generation_token_ids": [100 + slot] * tokens,
               "generation_log_probs": [logprob] * tokens}
    return json.dumps({"responses_create_params": {"input": "q"}, "reward": reward,
                       "response": {"id": "r", "error": None, "output": [message]},
                       "agent_ref": {"name": "simple_agent"},
                       "_ng_task_index": task, "_ng_rollout_index": slot})


class Case(harness.Case):
    def run_config(self, *args, sets=(), code=0):
        """A run of the quickstart's config; its summary."""
        out = self.dir / "summary.json"
        out.unlink(missing_ok=True)
        words = [word for key in sets for word in ("--set", key)]
        done = self.run_millrace("run", QUICKSTART, "--json", out, *words, *args)
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        return json.loads(out.read_text()) if out.exists() else None

    def imported(self, lines, name="t"):
        traces, recording = self.dir / f"{name}.jsonl", self.dir / f"{name}.mrec"
        traces.write_text("".join(line + "\n" for line in lines))
        done = self.run_millrace("import", traces, "-o", recording)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        return recording


class Summary(Case):
    def test_every_episode_is_in_the_ledger_once(self):
        summary = self.run_config()
        self.assertTrue(summary["balanced"])
        self.assertEqual(sum(summary["ledger"].values()), summary["episodes"])
        self.assertGreater(summary["ledger"]["trained"], 0)
        for state in ("errored", "pruned", "gated"):
            self.assertGreater(summary["ledger"][state], 0, state)

    def test_it_has_the_fields_that_tools_read(self):
        summary = self.run_config()
        for field in ("episodes", "groups", "nodes", "tokens", "samples", "sample_tokens",
                      "micro_batches", "steps", "ranks", "wire_bytes", "peak_rss_bytes"):
            self.assertGreater(summary[field], 0, field)
        self.assertRegex(summary["grid_hash"], "^[0-9a-f]{32}$")
        for stage in ("decode", "score", "pack", "trainer_decode", "tensors", "digest"):
            self.assertGreater(summary["stages"][stage]["seconds"], 0, stage)
            self.assertGreater(summary["stages"][stage]["bytes"], 0, stage)

    def test_its_config_digest_tells_configs_apart(self):
        digests = [self.run_config("--steps", "1", sets=[key])["config_digest"]
                   for key in ("seq_len=8192", "seq_len=4096", "seq_len=8192")]
        self.assertEqual(digests[0], digests[2])
        self.assertNotEqual(digests[0], digests[1])

    def test_its_counts_are_those_of_the_recording(self):
        recording = self.synth(scale="1")
        counts = json.loads(self.run_millrace("inspect", recording, "--json").stdout)
        summary = self.run_config(sets=[f"source.path={recording}"])
        self.assertEqual(summary["episodes"], sum(counts["episodes"].values())
                         if isinstance(counts["episodes"], dict) else counts["episodes"])
        self.assertEqual(summary["tokens"], counts["tokens"])

    def test_every_rank_gets_as_many_micro_batches(self):
        dump = self.dir / "dump"
        self.run_config("--dump", dump, sets=["trainer.ranks=3"])
        for step in dump.iterdir():
            ranks = list(step.glob("rank-*"))
            counts = {len(list(rank.iterdir())) for rank in ranks}
            self.assertEqual(len(ranks), 3, step)
            self.assertEqual(len(counts), 1, step)


class Determinism(Case):
    """The same recording and config give the same grid_hash, whatever works on it and in whatever order."""

    def assert_same(self, sets_of_runs, recording):
        hashes = {}
        for sets in sets_of_runs:
            summary = self.run_config(sets=[f"source.path={recording}", *sets])
            self.assertGreater(summary["steps"], 3)
            hashes[str(sets)] = summary["grid_hash"]
        self.assertEqual(len(set(hashes.values())), 1, hashes)

    def test_on_every_run_and_for_any_number_of_actors_and_threads(self):
        recording = self.synth(scale="1")
        runs = [[], []]
        for stage in ("env_reader", "assembler", "scorer", "packer"):
            runs += [[f"{stage}.instances={n}"] for n in (1, 2, 4)]
        runs += [[f"runtime.workers={n}"] for n in (1, 4)]
        runs += [["planner.lookahead=1"], ["planner.max_backlog_steps=1"],
                 ["planner.max_open_groups=1"], ["memory.limit=1048576"]]
        self.assert_same(runs, recording)

    def test_for_loose_frames_too(self):
        recording = self.synth("loose.mrec", "1", "--loose")
        self.assert_same([["assembler.instances=1"], ["assembler.instances=4"],
                          ["planner.max_open_groups=1"]], recording)

    def test_under_a_schedule_fuzzer(self):
        recording = self.synth(scale="1")
        base = random.SystemRandom().randrange(1, 2**32)
        seeds = [base + i for i in range(5)]
        print(f"schedule seeds {seeds}", file=sys.stderr)
        hashes = {self.run_config("--schedule-seed", seed,
                                  sets=[f"source.path={recording}", "runtime.workers=4",
                                        "packer.instances=4"])["grid_hash"] for seed in seeds}
        hashes.add(self.run_config(sets=[f"source.path={recording}"])["grid_hash"])
        self.assertEqual(len(hashes), 1, f"seeds {seeds}")

    def test_another_recording_has_another_hash(self):
        hashes = {self.run_config(sets=[f"source.seed={seed}"])["grid_hash"] for seed in (1, 2)}
        self.assertEqual(len(hashes), 2)

    def test_a_script_recomputes_the_hash_from_dumped_tensors(self):
        dump = self.dir / "dump"
        summary = self.run_config("--dump", dump)
        done = subprocess.run(["/usr/bin/python3", ROOT / "tests/tools/grid_hash.py", dump],
                              capture_output=True, text=True, timeout=harness.DEADLINE_S)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(done.stdout.split()[-1], summary["grid_hash"])


class Groups(Case):
    def test_a_uniform_group_is_pruned_and_with_a_gate_gated(self):
        recording = self.imported([rollout(slot, 0.0, 20 + slot) for slot in (1, 3, 4, 0, 2)])
        ledger = self.run_config(sets=[f"source.path={recording}"])["ledger"]
        self.assertEqual(ledger["pruned"], 5)
        gate = ["env_default.gate.reject_min=0", "env_default.gate.reject_max=0"]
        ledger = self.run_config(sets=[f"source.path={recording}", *gate])["ledger"]
        self.assertEqual(ledger["gated"], 5)

    def test_siblings_far_apart_are_one_group_even_with_one_open_group_allowed(self):
        # The second half of every group lies behind the first halves of all groups.
        recording = self.imported([rollout(slot, slot % 2, 8, task) for task in range(200) for slot in range(2)])
        interleave(recording)
        summary = self.run_config(sets=[f"source.path={recording}", "planner.max_open_groups=1",
                                        "planner.max_backlog_steps=1"])
        self.assertEqual(summary["ledger"]["trained"], 400)

    def test_ids_outside_the_vocabulary_reject_their_episode_and_are_listed(self):
        recording = self.imported([rollout(slot, slot % 2, 8) for slot in range(4)])
        state = self.dir / "state"
        summary = self.run_config(sets=[f"source.path={recording}", f"state={state}", "vocab_size=103"])
        self.assertEqual((summary["ledger"]["rejected"], summary["ledger"]["trained"]), (1, 3))
        listed = [json.loads(line) for line in (state / "quarantine.jsonl").read_text().splitlines()]
        self.assertEqual(len(listed), 1)
        self.assertIn("103", listed[0]["reason"])

    def test_groups_whose_size_the_config_contradicts_never_complete_and_keep_nobody_waiting(self):
        recording = self.imported([rollout(slot, slot % 2, 8, task) for task in range(2) for slot in range(4)])
        summary = self.run_config(sets=[f"source.path={recording}", "env.simple_agent.group_size=5"])
        self.assertEqual(summary["ledger"]["expired"], 8)

    def test_a_short_last_batch_ships_or_is_held(self):
        recording = self.imported([rollout(slot, slot % 2, 8) for slot in range(4)])
        shipped = self.run_config(sets=[f"source.path={recording}"])
        self.assertEqual((shipped["steps"], shipped["ledger"]["trained"]), (1, 4))
        held = self.run_config(sets=[f"source.path={recording}", "batch.last=hold"])
        self.assertEqual((held["steps"], held["ledger"]["held"]), (0, 4))

    def test_steps_ends_a_run_early_and_holds_the_rest(self):
        summary = self.run_config("--steps", 2)
        self.assertEqual(summary["steps"], 2)
        self.assertGreater(summary["ledger"]["held"], 0)
        self.assertEqual(sum(summary["ledger"].values()), summary["episodes"])


class Age(Case):
    RULES = ("source.version=recorded", "planner.max_staleness=2")

    def test_what_is_too_old_is_not_trained_and_everything_is_told(self):
        summary = self.run_config(sets=self.RULES)
        self.assertTrue(summary["balanced"])
        self.assertGreater(summary["ledger"]["stale"], 0)
        self.assertLessEqual(max(map(int, summary["staleness"])), 2)
        self.assertEqual(sum(summary["staleness"].values()),
                         summary["ledger"]["trained"] + summary["ledger"]["truncated"])
        self.assertEqual(summary["stale_lengths"]["samples"], summary["ledger_samples"]["stale"]["samples"])
        self.assertEqual(summary["kept_lengths"]["samples"], summary["samples"])

    def test_it_is_the_same_for_any_number_of_actors(self):
        one = self.run_config(sets=self.RULES)
        other = self.run_config(sets=(*self.RULES, "env_reader.instances=2", "assembler.instances=3",
                                      "scorer.instances=4", "packer.instances=1", "planner.lookahead=7",
                                      "runtime.workers=1"))
        for field in ("grid_hash", "ledger", "staleness", "stale_lengths"):
            self.assertEqual(one[field], other[field], field)
        for step, same in zip(one["step_reports"], other["step_reports"]):
            self.assertEqual(step["stale_lengths"], same["stale_lengths"], step["step"])

    def test_an_offset_makes_all_of_it_new_again(self):
        summary = self.run_config(sets=("source.version=offset 100", "planner.max_staleness=0"))
        self.assertEqual(summary["ledger"]["stale"], 0)


class Emptiness(Case):
    def run_gated(self, *sets):
        """All groups are gated, of every environment."""
        config = self.dir / "gated.toml"
        config.write_text('source.preset = "quickstart"\nbatch.traces = 40\nseq_len = 8192\n'
                          '[env_default]\ngate = {reject_min = -100, reject_max = 100}\n')
        return self.run_millrace("run", config, *[word for key in sets for word in ("--set", key)])

    def test_a_run_with_nothing_to_train_ends_and_names_the_reason(self):
        done = self.run_gated("planner.max_empty_batches=3")
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertIn("nothing to train in", done.stderr)
        self.assertRegex(done.stderr, r"episodes since the start: gated \d+, errored \d+")

    def test_without_the_key_it_reads_all_of_it(self):
        done = self.run_gated()
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("0 steps", done.stdout)


class GroupRules(Case):
    # How many groups it closes depends on the machine, but no group of eight comes within a millisecond at this pace.
    def test_a_group_deadline_leaves_the_ledger_balanced(self):
        summary = self.run_config(sets=("deterministic=false", "source.pace=300",
                                        "env_default.group_deadline=0.001"))
        self.assertTrue(summary["balanced"])
        self.assertGreater(summary["ledger"]["expired"], 0)
        self.assertEqual(sum(summary["ledger"].values()) + summary["too_late"], summary["episodes"])

    def test_one_failed_episode_drops_a_group_that_is_scored_as_a_unit(self):
        summary = self.run_config(sets=("env_default.group_scoring=unit",))
        self.assertTrue(summary["balanced"])
        self.assertGreater(summary["ledger"]["group_dropped"], 0)
        self.assertEqual(summary["ledger"]["errored"], self.run_config()["ledger"]["errored"])


class Damage(Case):
    def test_a_flipped_byte_costs_its_group_and_is_told(self):
        recording = self.synth(scale="1")
        data = bytearray(recording.read_bytes())
        data[len(data) // 2] ^= 0xFF
        recording.write_bytes(data)
        summary = self.run_config(sets=[f"source.path={recording}"], code=1)
        self.assertIn("skipped", summary["damage"][0])
        self.assertTrue(summary["balanced"])
        allowed = self.run_config("--allow-damage", sets=[f"source.path={recording}"])
        self.assertTrue(allowed["balanced"])
        self.assertEqual(sum(allowed["ledger"].values()), allowed["episodes"])

    def test_a_recording_that_was_cut_off_balances_with_what_is_there(self):
        recording = self.synth(scale="1")
        data = recording.read_bytes()
        recording.write_bytes(data[:len(data) * 2 // 3])
        summary = self.run_config(sets=[f"source.path={recording}"])
        self.assertTrue(summary["balanced"])
        self.assertTrue(summary["torn"])
        self.assertGreater(summary["ledger"]["expired"], 0)


class Signals(Case):
    def stop(self, number):
        """Stops a slow run after its first step; its exit code and output."""
        run = subprocess.Popen([harness.program, "run", QUICKSTART, "--set", "source.pace=40"],
                               stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE, text=True, cwd=self.dir)
        self.addCleanup(run.kill)
        lines = []
        for line in run.stdout:
            lines.append(line)
            if line.startswith("step 1:"):
                break
        run.send_signal(number)
        rest, errors = run.communicate(timeout=harness.DEADLINE_S)
        return run.returncode, "".join(lines) + rest, errors

    def test_a_signal_stops_a_run_in_order_and_says_what_is_held(self):
        for number in (signal.SIGTERM, signal.SIGINT):
            code, output, errors = self.stop(number)
            self.assertEqual(code, 1, output + errors)
            self.assertIn("stopped by a signal", output)
            self.assertRegex(output, r"held +\d+")
            self.assertIn("balanced", output)


class Progress(Case):
    def test_a_terminal_gets_one_line_that_is_rewritten_and_others_plain_lines(self):
        master, slave = pty.openpty()
        run = subprocess.Popen([harness.program, "run", QUICKSTART, "--set", "source.pace=40", "--steps", "2"],
                               stdin=subprocess.DEVNULL, stdout=slave, stderr=slave, cwd=self.dir)
        os.close(slave)
        shown = b""
        while True:
            try:
                piece = os.read(master, 65536)
            except OSError:
                break
            if not piece:
                break
            shown += piece
        self.assertEqual(run.wait(timeout=harness.DEADLINE_S), 0)
        os.close(master)
        self.assertIn(b"\r\x1b[2K", shown)
        self.assertIn(b"tokens/s", shown)
        plain = self.run_millrace("run", QUICKSTART, "--steps", "2")
        self.assertNotIn("\x1b", plain.stdout)


if __name__ == "__main__":
    harness.main()
