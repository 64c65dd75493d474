#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Processes that come, leave and die while a run goes on: the same grid_hash, or an end that says who was lost.

    test_elastic.py MILLRACE [unittest arguments]

MILLRACE_CHAOS_ROUNDS: how many random events (default: a few). MILLRACE_CHAOS_SEED: that of an earlier test.
"""
import signal
import socket
import time

import cluster
import harness
from cluster import Cluster, wait_until
from proxy import Proxy
from recording import interleave
from test_run import rollout

GROUPS_OF_SCALE_1 = 66
ELASTIC = ("scorer", "assembler", "packer")


class Case(cluster.Case):
    def paced(self, seconds, groups_per_s=40, *flags):
        """A recording that takes that long, and the sets for it."""
        path = self.synth("paced.mrec", str(max(0.5, seconds * groups_per_s / GROUPS_OF_SCALE_1)), *flags)
        return [f"source.path={path}", "batch.traces=20", "trainer.ranks=2"], [f"source.pace={groups_per_s}"]

    def imported(self, lines):
        traces, recording = self.dir / "t.jsonl", self.dir / "t.mrec"
        traces.write_text("".join(line + "\n" for line in lines))
        done = self.run_millrace("import", traces, "-o", recording)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        return recording

    def assert_takes_work(self, system, name, role, within_ms=2000):
        """Measured by its own clock, since its start."""
        def working():
            one = system.status().get(name)
            if one is None:
                return None
            counters = one["status"]["counters"]
            works = counters.get("groups_scored", 0) > 0 if role == "scorer" else counters.get("bytes_received", 0) > 100_000
            return one["status"]["uptime_ms"] if works else None
        uptime = wait_until(working, 20, f"{name} takes work", system.story)
        # A status is at most one lease quarter and one question late.
        self.assertLessEqual(uptime, within_ms + 1500, name)
        return uptime


class Elastic(Case):
    def test_members_join_take_work_and_are_drained(self):
        rounds = cluster.ROUNDS or 3
        source, pace = self.paced(3 * rounds)
        one = self.in_one_process(*source)
        system = Cluster(self, [*source, *pace]).start_all(env_reader=1)
        names = {role: [f"{role}-0", f"{role}-1"] for role in ELASTIC}
        system.wait_for_step(1)
        roles = self.random.sample(ELASTIC * rounds, rounds) if rounds > 3 else ELASTIC
        for number, role in enumerate(roles, 2):
            joined = system.start(role, number)
            self.assert_takes_work(system, joined.name, role)
            names[role].append(joined.name)
            leaving = names[role].pop(self.random.randrange(len(names[role])))
            system.drain(leaving)
            self.assertEqual(system.running[leaving].exit_code(20), 0, system.story())
            self.assertFalse(system.running["planner"].ended(), "the run was too short for what is to happen in it")
        self.assert_same(system.summary(), one)


class Killed(Case):
    """kill -9. The lease is link.timeout: one second."""

    def test_scorers_and_packers_are_killed_at_random(self):
        rounds = cluster.ROUNDS or 3
        source, pace = self.paced(2.5 * rounds)
        one = self.in_one_process(*source)
        system = Cluster(self, [*source, *pace]).start_all(env_reader=1)
        names = {role: [f"{role}-0", f"{role}-1"] for role in ("scorer", "packer")}
        system.wait_for_step(1)
        for number in range(2, 2 + rounds):
            role = self.random.choice(list(names))
            killed = self.random.choice(names[role])
            system.running[killed].kill()
            steps = system.planner_steps()
            if self.random.random() < 0.5:  # under the same name
                system.start(role, int(killed.rsplit("-", 1)[1]))
            else:
                names[role].remove(killed)
                names[role].append(system.start(role, number).name)
            self.assertFalse(system.running["planner"].ended(), "the run was too short for what is to happen in it")
            system.wait_for_step(steps + self.random.randrange(1, 4), 20)
        self.assert_same(system.summary(), one)

    def test_the_last_packer_and_the_last_scorer_are_killed_and_come_again(self):
        source, pace = self.paced(4)
        one = self.in_one_process(*source)
        system = Cluster(self, [*source, *pace]).start_all(env_reader=1, scorer=1, packer=1)
        for role in ("scorer", "packer"):
            system.wait_for_step(system.planner_steps() + 1)
            system.running[f"{role}-0"].kill()
            system.start(role, 0)
        self.assert_same(system.summary(), one)

    def test_a_hundred_groups_at_a_scorer_that_is_killed_and_killed_again_while_it_starts(self):
        path = self.synth("many.mrec", "3")
        sets = [f"source.path={path}", "batch.traces=20", "trainer.ranks=2", "planner.max_open_groups=150",
                "planner.max_backlog_steps=100"]
        one = self.in_one_process(*sets)
        system = Cluster(self, sets, timeout=3)
        system.start("env-reader", 0)
        system.start("assembler", 0)
        scorer = system.start("scorer", 0)
        wait_until(lambda: "scorer-0" in system.status(), 20, "the scorer is there", system.story)
        scorer.send(signal.SIGSTOP)
        for role, number in (("packer", 0), ("trainer", 0), ("trainer", 1), ("planner", 0)):
            system.start(role, number)

        def in_flight():
            reader = system.status().get("env-reader-0")
            return reader is not None and reader["status"]["counters"].get("groups", 0) >= 100
        wait_until(in_flight, 20, "100 groups are on their way", system.story)
        scorer.kill()
        again = system.start("scorer", 0)
        time.sleep(self.random.uniform(0, 0.2))  # anywhere in its start
        again.kill()
        system.start("scorer", 0)
        self.assert_same(system.summary(), one)

    def test_the_groups_of_a_killed_assembler_go_to_another(self):
        rounds = cluster.ROUNDS or 2
        source, pace = self.paced(3 * rounds)
        one = self.in_one_process(*source)
        system = Cluster(self, [*source, *pace]).start_all(env_reader=1)
        names = ["assembler-0", "assembler-1"]
        for number in range(2, 2 + rounds):
            system.wait_for_step(system.planner_steps() + 1)
            killed = names.pop(self.random.randrange(len(names)))
            system.running[killed].kill()
            if self.random.random() < 0.5:
                number = int(killed.rsplit("-", 1)[1])
            names.append(system.start("assembler", number).name)
            self.assertFalse(system.running["planner"].ended(), "the run was too short for what is to happen in it")
        self.assert_same(system.summary(), one)

    def assert_ends_everywhere(self, lost):
        source, pace = self.paced(20)
        system = Cluster(self, [*source, *pace]).start_all(env_reader=1)
        system.wait_for_step(1)
        system.running[lost].kill()
        for name, process in system.running.items():
            if name == lost:
                continue
            self.assertEqual(process.exit_code(15), 1, system.story())
            said = [line for line in process.lines() if line.startswith("millrace: ")]
            self.assertEqual(len(said), 1, system.story())
            self.assertIn(lost, said[0])

    def test_without_the_planner_all_end(self):
        self.assert_ends_everywhere("planner")

    def test_without_a_trainer_all_end(self):
        self.assert_ends_everywhere("trainer-1")

    def test_without_an_env_reader_all_end(self):
        self.assert_ends_everywhere("env-reader-0")


class Directory(Case):
    def test_it_is_killed_and_started_again_and_the_run_does_not_mind(self):
        source, pace = self.paced(8)
        one = self.in_one_process(*source)
        system = Cluster(self, [*source, *pace]).start_all(env_reader=1)
        system.wait_for_step(2)
        system.running["directory"].kill()
        system.wait_for_step(system.planner_steps() + 2)
        system.start_directory(system.endpoint)
        joined = system.start("scorer", 7)
        self.assert_takes_work(system, joined.name, "scorer")
        self.assertFalse(system.running["planner"].ended(), "the run was too short for what is to happen in it")
        self.assert_same(system.summary(), one)
        for process in system.all:
            told = [line for line in process.lines() if "counts as gone" in line or " lost" in line]
            self.assertEqual(told, [], process.name)


class Groups(Case):
    """They do not split: what is begun at an assembler is completed there, whoever comes or is out of sight."""

    GROUPS = 110
    PACE = 15

    def interleaved(self, *sets):
        """The last episode of every group lies behind the first ones of all groups, which take seven seconds."""
        recording = self.imported([rollout(slot, slot % 2, self.random.randrange(4, 40), task)
                                   for task in range(self.GROUPS) for slot in range(4)])
        interleave(recording, self.random)
        sets = [f"source.path={recording}", "batch.traces=20", "trainer.ranks=2",
                f"planner.max_open_groups={self.GROUPS}", *sets]
        return self.in_one_process(*sets), Cluster(self, [*sets, f"source.pace={self.PACE}"])

    def wait_until_groups_are_open(self, system):
        def begun():
            reader = system.status().get("env-reader-0")
            return reader is not None and reader["status"]["counters"].get("groups", 0) >= 5
        wait_until(begun, 20, "groups begin", system.story)

    def assert_groups_are_open(self, system):
        self.assertEqual(system.planner_steps(), 0, "the run was too short for what is to happen in it")

    def assert_none_has_split(self, system, one):
        summary = system.summary()
        self.assertEqual(summary["ledger"]["trained"], 4 * self.GROUPS)
        self.assert_same(summary, one)

    def test_an_assembler_joins_between_the_first_and_the_last_episode_of_a_hundred_groups(self):
        one, system = self.interleaved()
        system.start_all(env_reader=1)
        self.wait_until_groups_are_open(system)
        joined = system.start("assembler", 2)
        wait_until(lambda: system.status().get(joined.name, {}).get("state") == "alive", 20, "it has joined", system.story)
        self.assert_groups_are_open(system)
        self.assert_none_has_split(system, one)

    def assert_out_of_sight(self, role, number):
        """The directory loses a process that the others still reach; later it sees it again."""
        one, system = self.interleaved("env_reader.instances=2")
        host, port = system.endpoint.removeprefix("tcp://").split(":")
        proxy = Proxy((host, 0), (host, int(port)))
        self.addCleanup(proxy.close)
        for each in cluster.STAGES:
            for i in range(2):
                hidden = (each, i) == (role, number)
                system.start(each, i, *([f"directory.endpoint=tcp://{host}:{proxy.address[1]}"] if hidden else []))
        system.start("planner", 0)
        name = f"{role}-{number}"
        self.wait_until_groups_are_open(system)
        proxy.stop_forwarding()
        wait_until(lambda: f"{name} has not been heard of" in system.running["directory"].text(), 15,
                   f"the directory misses {name}", system.story)
        proxy.go_on()
        wait_until(lambda: system.status().get(name, {}).get("state") == "alive", 15,
                   f"the directory sees {name} again", system.story)
        self.assert_groups_are_open(system)
        self.assert_none_has_split(system, one)

    def test_an_assembler_is_out_of_the_directorys_sight(self):
        self.assert_out_of_sight("assembler", 1)

    def test_an_env_reader_is_out_of_the_directorys_sight(self):
        self.assert_out_of_sight("env-reader", 1)


class Ends(Case):
    def test_a_fast_source_and_a_slow_trainer_end_in_order(self):
        path = self.synth("short.mrec", "0.5")
        sets = [f"source.path={path}", "batch.traces=40", "trainer.ranks=2", "planner.lookahead=3",
                "planner.max_backlog_steps=100", "planner.max_open_groups=1000"]
        one = self.in_one_process(*sets)
        system = Cluster(self, sets, timeout=6)
        trainer = system.start("trainer", 1)
        wait_until(lambda: "trainer-1" in system.status(), 20, "the trainer is there", system.story)
        trainer.send(signal.SIGSTOP)
        for role in cluster.STAGES:
            for number in range(1 if role in ("env-reader", "trainer") else 2):
                system.start(role, number)
        system.start("planner", 0)

        def all_is_read():
            reader = system.status().get("env-reader-0")
            return reader is not None and reader["status"]["counters"].get("episodes", 0) == one["episodes"]
        wait_until(all_is_read, 20, "the source is read to its end", system.story)
        self.assertEqual(system.planner_steps(), 0)
        trainer.send(signal.SIGCONT)
        self.assert_same(system.summary(), one)

    def test_all_are_killed_and_started_again_on_the_same_sockets(self):
        path = self.synth("short.mrec", "1")
        for bind, directory in (("ipc", f"ipc://{self.dir}/directory.sock"), ("tcp://127.0.0.1:*", "tcp://127.0.0.1:*")):
            sets = [f"source.path={path}", "trainer.ranks=2", f"link.bind={bind}"]
            one = self.in_one_process(*sets[:2])
            # The second start goes on in the state folder of the first: nothing of it is to be rolled back.
            system = Cluster(self, [*sets, "source.pace=50", "steps.keep=durable"], name=f"run-{bind[:3]}", directory=directory)
            system.start_all(env_reader=1).wait_for_step(1)
            system.kill_all()
            system.start_directory(system.endpoint)
            self.assert_same(system.start_all(env_reader=1).summary(), one)

    def test_two_runs_on_one_host_do_not_collide(self):
        path = self.synth("short.mrec", "1")
        for bind in ("tcp", "ipc"):
            systems = []
            for name in ("a", "b"):
                folder = self.dir / f"{name}-{bind}"
                where = ("tcp://127.0.0.1:*", "tcp://127.0.0.1:*") if bind == "tcp" else ("ipc", f"ipc://{folder}/d")
                systems.append(Cluster(self, [f"source.path={path}", "trainer.ranks=2", f"link.bind={where[0]}"],
                                       name=f"{name}-{bind}", directory=where[1]))
            one = self.in_one_process(*systems[0].sets[2:4])
            for system in systems:
                system.start_all(env_reader=1)
            for system in systems:
                self.assert_same(system.summary(), one)

    def test_a_socket_that_somebody_has_is_refused(self):
        system = Cluster(self, directory=f"ipc://{self.dir}/d")
        other = system.spawn("other", ["directory"], [f"directory.endpoint={system.endpoint}"])
        self.assertNotEqual(other.exit_code(15), 0)
        self.assertEqual(len(other.lines()), 1, other.text())
        self.assertIn(f"{self.dir}/d", other.text())
        self.assertTrue(system.status())


class Cuts(Case):
    """Of the links to the planner, at any byte: what was on its way is lost, or the answer to it."""

    def assert_survives(self, cuts, budget, seconds=4, swallows=False):
        """The planner advertises an address of this machine on which a proxy listens."""
        source, pace = self.paced(seconds)
        one = self.in_one_process(*source)
        system = Cluster(self, [*source, *pace])
        for role in cluster.STAGES:
            for number in range(1 if role == "env-reader" else 2):
                system.start(role, number)
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = free.getsockname()[1]
        proxy = Proxy(("127.0.0.2", port), ("127.0.0.1", port), budget, swallows)
        self.addCleanup(proxy.close)
        system.start("planner", 0, f"link.bind=tcp://127.0.0.1:{port}", "link.advertise=127.0.0.2")
        summary = system.summary()
        self.assert_same(summary, one)
        self.assertGreaterEqual(proxy.cuts, cuts)

    def test_connections_are_cut_anywhere(self):
        self.assert_survives(20, lambda forth: self.random.randrange(300, 50_000))

    def test_what_the_planner_answers_is_lost(self):
        self.assert_survives(20, lambda forth: None if forth else self.random.randrange(300, 2_500), 6)

    def test_connections_fall_silent_anywhere(self):
        self.assert_survives(3, lambda forth: self.random.randrange(2_000, 200_000), 6, swallows=True)


if __name__ == "__main__":
    harness.main()
