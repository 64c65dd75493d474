#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Memory of processes when somebody downstream stalls, and what is larger than the memory that there is.

    test_memory.py MILLRACE [unittest arguments]

MILLRACE_CHAOS_STALL: seconds of a stall (default: 3). Prints what docs/benchmarks.md has.
"""
import os
import signal
import sys
import time
from pathlib import Path

import cluster
import harness
from cluster import Cluster
from test_run import rollout

STALL_S = float(os.environ.get("MILLRACE_CHAOS_STALL", "3"))
MiB = 1 << 20


def rss(process):
    """Resident bytes that are not of a file."""
    for line in Path(f"/proc/{process.popen.pid}/status").read_text().splitlines():
        if line.startswith("RssAnon:"):
            return int(line.split()[1]) * 1024
    return 0


class Stall(cluster.Case):
    LIMIT = 12 * MiB
    # A group of the preset has at most about this much.
    MESSAGE = 1 * MiB

    def watch(self, system, seconds, peaks):
        """Highest held bytes, and resident ones, of every process, until so many seconds have passed.

        @returns the last that each said it holds.
        """
        until = time.monotonic() + seconds
        held = {}
        while time.monotonic() < until:
            status = system.status()
            for name, process in system.running.items():
                if process.ended():
                    continue
                peak = peaks.setdefault(name, {"held": 0, "rss": 0, "over": 0})
                if name in status:
                    held[name] = status[name]["status"]["held"]
                    peak["held"] = max(peak["held"], held[name])
                    peak["over"] = status[name]["status"]["counters"].get("over_limit_bytes", 0)
                peak["rss"] = max(peak["rss"], rss(process))
        return held

    def stall(self, stalled, readers):
        path = self.synth("loose.mrec", "6", "--loose")
        sets = [f"source.path={path}", "batch.traces=10", "trainer.ranks=2", f"env_reader.instances={readers}",
                "planner.max_open_groups=1000", "planner.max_backlog_steps=1000"]
        one = self.in_one_process(*sets)
        system = Cluster(self, [*sets, f"memory.limit={self.LIMIT}"], timeout=1.5 * STALL_S + 2)
        system.start_all(env_reader=readers)
        system.wait_for_step(3)
        system.running[stalled].send(signal.SIGSTOP)
        self.addCleanup(system.running[stalled].send, signal.SIGCONT)
        peaks = {}
        self.watch(system, STALL_S / 2, peaks)
        steps = system.planner_steps()
        before = {name: dict(peak) for name, peak in peaks.items()}
        level = self.watch(system, STALL_S / 2, peaks)
        self.assertEqual(system.planner_steps(), steps, "the stall stops the run")
        system.running[stalled].send(signal.SIGCONT)
        self.assert_same(system.summary(), one)
        print(f"\n{stalled} stalls for {STALL_S:g} s; memory.limit {self.LIMIT / MiB:g} MiB, "
              f"{one['wire_bytes'] / MiB:.0f} MiB of micro batches", file=sys.stderr)
        print(f"{'process':14} {'held at the end':>16} {'held at most':>13} {'let in when hungry':>18} "
              f"{'anonymous RSS at most':>22}   MiB", file=sys.stderr)
        for name, peak in peaks.items():
            print(f"{name:14} {level.get(name, 0) / MiB:16.2f} {peak['held'] / MiB:13.2f} {peak['over'] / MiB:18.2f} "
                  f"{peak['rss'] / MiB:22.1f}", file=sys.stderr)
        for name, peak in peaks.items():
            self.assertLessEqual(peak["held"], self.LIMIT + peak["over"] + readers * self.MESSAGE, name)
            self.assertLessEqual(peak["held"], before[name]["held"] + self.MESSAGE, f"{name} does not level off")
        for name in ("assembler-0", "assembler-1"):
            self.assertGreater(peaks[name]["held"], self.LIMIT / 2, "the stall was felt nowhere")

    def test_a_trainer_stalls(self):
        self.stall("trainer-1", 2)

    def test_a_packer_stalls_and_eight_readers_pause(self):
        self.stall("packer-1", 8)


class Small(cluster.Case):
    """Nothing that is larger than a window, or than all the memory that a process may hold, stops a run."""

    LIMIT = MiB  # the least that the config takes

    def run_with(self, sets):
        one = self.in_one_process(*sets)
        system = Cluster(self, [*sets, f"memory.limit={self.LIMIT}"]).start_all(env_reader=1)
        summary = system.summary()
        self.assert_same(summary, one)
        return summary

    def imported(self, lines):
        traces, recording = self.dir / "t.jsonl", self.dir / "t.mrec"
        traces.write_text("".join(line + "\n" for line in lines))
        self.assertEqual(self.run_millrace("import", traces, "-o", recording).returncode, 0)
        return f"source.path={recording}"

    def test_a_step_is_larger_than_a_feeders_window(self):
        path = self.synth("loose.mrec", "2", "--loose")
        summary = self.run_with([f"source.path={path}", "batch.traces=300", "trainer.ranks=2"])
        self.assertGreater(summary["wire_bytes"] / summary["steps"] / 2, 2 * self.LIMIT)

    def test_episodes_and_micro_batches_are_larger_than_the_limit(self):
        lines = [rollout(slot, slot % 2, 200_000, task) for task in range(3) for slot in range(4)]
        summary = self.run_with([self.imported(lines), "batch.traces=4", "trainer.ranks=2", "seq_len=524288"])
        self.assertGreater(summary["wire_bytes"] / summary["micro_batches"], self.LIMIT)

    def test_an_incomplete_group_before_all_others_keeps_nobody_waiting(self):
        lines = [rollout(slot, slot % 2, 3000, task) for task in range(100) for slot in range(4) if (task, slot) != (0, 2)]
        summary = self.run_with([self.imported(lines), "batch.traces=20", "trainer.ranks=2",
                                 "env.simple_agent.group_size=4"])
        self.assertEqual(summary["ledger"]["expired"], 3)
        self.assertEqual(summary["ledger"]["trained"], 396)

    def test_a_recording_that_was_cut_off(self):
        path = self.synth("loose.mrec", "0.5", "--loose")
        data = path.read_bytes()
        path.write_bytes(data[:len(data) * 2 // 3])
        summary = self.run_with([f"source.path={path}", "batch.traces=20", "trainer.ranks=2"])
        self.assertGreater(summary["ledger"]["expired"], 0)


if __name__ == "__main__":
    harness.main()
