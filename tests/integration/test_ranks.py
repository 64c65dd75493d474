#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Ranks that die or hang: all of their job end with 75, and a job that is started again goes on from the checkpoint.

    test_ranks.py MILLRACE [unittest arguments]

MILLRACE_CHAOS_ROUNDS: how many crash points (default: a few). MILLRACE_CHAOS_SEED: that of an earlier test.
"""
import signal
import time

import cluster
import harness
from cluster import Cluster, wait_until

RANKS = 3
RESTART = 75
# What a rank passes in a run with checkpoints, in about this order.
POINTS = (
    "feeder.hello.taken", "trainer.load.begin", "trainer.load.done", "feeder.checkpoint.loaded", "feeder.state.told",
    "feeder.generation.begun", "trainer.join.begin", "trainer.join.done", "feeder.offer.taken",
    "feeder.micro_batch.taken", "feeder.step.staged", "feeder.staged.told", "feeder.commit.taken", "trainer.step.begin",
    "trainer.step.agreed", "trainer.step.applied", "trainer.step.trained", "trainer.step.said", "feeder.trained.taken",
    "feeder.trained.forwarded", "feeder.recorded.taken", "trainer.checkpoint.begin", "trainer.checkpoint.written",
    "trainer.checkpoint.saved", "trainer.checkpoint.said", "feeder.saved.taken", "feeder.saved.forwarded",
    "trainer.checkpoint.remove", "trainer.checkpoint.removed")


class Ranks(cluster.Case):
    def setUp(self):
        super().setUp()
        self.recording = self.synth(scale="1")
        self.sets = [f"source.path={self.recording}", "batch.traces=8", f"trainer.ranks={RANKS}", "deterministic=true",
                     "trainer.checkpoint_every=3", "steps.keep=durable", "recovery.wait=60"]

    def system(self, *sets):
        # The pace leaves time to do something to it before it ends.
        return Cluster(self, [*self.sets, "source.pace=20", *sets]).start_all(env_reader=1, trainer=RANKS)

    def start_again(self, system):
        for rank in range(RANKS):
            system.start("trainer", rank)

    def assert_restart(self, system, ranks, seconds=15):
        """They end with 75 and say why."""
        for rank in ranks:
            process = system.running[f"trainer-{rank}"]
            self.assertEqual(process.exit_code(seconds), RESTART, system.story())
            self.assertIn("millrace: ", process.lines()[-1])

    def test_when_a_rank_is_killed_all_others_end_to_be_started_again_and_the_run_goes_on(self):
        one = self.in_one_process(*self.sets)
        system = self.system()
        system.wait_for_step(4)
        system.running["trainer-1"].kill()
        self.assert_restart(system, (0, 2))
        self.start_again(system)
        self.assert_same(system.summary(), one)
        self.assertIn("generation 2", system.running["planner"].text())

    def test_when_a_rank_hangs_all_others_end_by_link_timeout(self):
        one = self.in_one_process(*self.sets)
        system = self.system()
        system.wait_for_step(4)
        stopped = system.running["trainer-2"]
        stopped.send(signal.SIGSTOP)
        self.assert_restart(system, (0, 1))
        stopped.kill()
        self.start_again(system)
        self.assert_same(system.summary(), one)

    # The other ranks wait for it in the collective; trainer.timeout (30 s) is not waited for.
    def test_when_a_rank_hangs_and_is_not_started_again_all_end_at_once_with_the_reason(self):
        system = self.system("recovery.wait=0")
        system.wait_for_step(2)
        system.running["trainer-2"].send(signal.SIGSTOP)
        for name, process in system.running.items():
            if name != "trainer-2":
                self.assertEqual(process.exit_code(15), 1, system.story())
                self.assertIn("trainer-2 is gone", process.lines()[-1])

    # Its own commit came, and another's did not: whoever had it waits for the others in the collective.
    def test_when_the_planner_is_killed_the_ranks_wait_and_go_on_with_the_next_one(self):
        one = self.in_one_process(*self.sets)
        system = self.system()
        system.wait_for_step(4)
        before = [system.running[f"trainer-{rank}"] for rank in range(RANKS)]
        system.running["planner"].kill()
        system.start("planner", 0)
        summary = system.summary()
        self.assert_same(summary, one)
        self.assertEqual([process.popen.returncode for process in before], [0] * RANKS, system.story())
        self.assertNotIn("generation 2", system.running["planner"].text())

    def kept_up(self, system, points):
        """Starts what dies until the planner has ended; each start of rank 0 is killed at the next point."""
        planner = system.running["planner"]
        until = time.monotonic() + 30 + 3 * len(points)

        def look():
            for rank in range(RANKS):
                process = system.running[f"trainer-{rank}"]
                if not process.ended() or planner.ended():
                    continue
                if process.popen.returncode == 0:
                    continue  # the planner has told it to, and ends as well
                self.assertIn(process.popen.returncode, (RESTART, -signal.SIGKILL), system.story())
                env = dict(system.env)
                if rank == 0 and points:
                    env["MILLRACE_CRASH_AT"] = points.pop()
                    print(env["MILLRACE_CRASH_AT"], end=" ", file=cluster.sys.stderr, flush=True)
                system.env, own = env, system.env
                system.start("trainer", rank)
                system.env = own
            return planner.ended()
        wait_until(look, until - time.monotonic(), "the planner ends",
                   lambda: system.tool("why", check=False).stdout + system.story())

    def test_a_rank_that_dies_at_any_of_its_crash_points_costs_nothing(self):
        one = self.in_one_process(*self.sets)
        points = self.random.sample(POINTS, min(cluster.ROUNDS or 8, len(POINTS)))
        system = self.system(f"source.pace={4 if cluster.ROUNDS else 10}")
        system.wait_for_step(1)
        system.running["trainer-0"].kill()
        self.kept_up(system, points)
        self.assertEqual(points, [], "the run was too short")
        self.assert_same(system.summary(), one)


if __name__ == "__main__":
    harness.main()
