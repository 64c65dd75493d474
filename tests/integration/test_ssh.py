#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""launch/ssh.sh against a real ssh server on loopback, one for each host, mostly with a stand-in for the program.

    test_ssh.py MILLRACE [unittest arguments]
"""
import getpass
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import threading
import time
import unittest
from pathlib import Path

import harness

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = ROOT / "launch" / "ssh.sh"
FAKE = ROOT / "tests" / "integration" / "fake_millrace.py"
SSHD = shutil.which("sshd", path=os.environ.get("PATH", "") + ":/usr/sbin:/usr/local/sbin")


def why_no_server(folder):
    """A reason why no ssh server can run here, or None. Makes what it needs in the folder."""
    if SSHD is None or shutil.which("ssh-keygen") is None:
        return "no sshd; launch/setup.sh --tests installs it"
    for name in ("host_key", "user_key"):
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", folder / name], check=True)
    if os.getuid() == 0:
        os.makedirs("/run/sshd", exist_ok=True)  # as its init script does
    (folder / "sshd_config").write_text(f"""HostKey {folder}/host_key
AuthorizedKeysFile {folder}/user_key.pub
StrictModes no
UsePAM no
PasswordAuthentication no
KbdInteractiveAuthentication no
PermitRootLogin yes
PidFile none
""")
    done = subprocess.run([SSHD, "-t", "-f", folder / "sshd_config"], capture_output=True, text=True, check=False)
    return f"sshd cannot run: {done.stderr.strip()}" if done.returncode else None


class Server:
    """A host: a listening socket on a free port that hands each connection to an sshd of its own, whose commands begin
    in the host's folder."""

    def __init__(self, folder, name, answers=True):
        self.home = folder / name
        self.home.mkdir()
        self.command = [SSHD, "-i", "-f", folder / "sshd_config", "-o",
                        f"ForceCommand=cd {self.home} && eval \"$SSH_ORIGINAL_COMMAND\""]
        self.answers = answers
        self.held = []
        self.socket = socket.create_server(("127.0.0.1", 0))
        self.port = self.socket.getsockname()[1]
        threading.Thread(target=self.serve, daemon=True).start()

    def serve(self):
        while True:
            try:
                connection, _ = self.socket.accept()
            except OSError:
                return
            if not self.answers:
                self.held.append(connection)
                continue
            server = subprocess.Popen(self.command, stdin=connection, stdout=connection, stderr=subprocess.DEVNULL)
            connection.close()
            threading.Thread(target=server.wait, daemon=True).start()

    def close(self):
        self.socket.shutdown(socket.SHUT_RDWR)
        self.socket.close()
        for each in self.held:
            each.close()


class Case(harness.Case):
    def setUp(self):
        super().setUp()
        reason = why_no_server(self.dir)
        if reason:
            self.skipTest(reason)
        self.calls = self.dir / "calls"
        self.calls.mkdir()
        (self.dir / "run.toml").write_text("made = 'up'\n")
        self.stand_in()
        self.ports = {}
        self.addCleanup(self.end_everything)

    def stand_in(self, **fake):
        program = self.dir / "program"
        words = "".join(f"export FAKE_{key.upper()}='{value}'\n" for key, value in fake.items())
        program.write_text(f"#!/bin/sh\nexport FAKE_CALLS='{self.calls}'\n{words}exec '{FAKE}' \"$@\"\n")
        program.chmod(0o755)

    def host(self, name, answers=True):
        server = Server(self.dir, name, answers)
        self.addCleanup(server.close)
        self.ports[name] = server.port

    def hosts(self):
        """HOSTS.toml for two hosts, each with a server and an entry in an ssh config of its own."""
        for name in ("one", "two"):
            if name not in self.ports:
                self.host(name)
        (self.dir / "ssh_config").write_text("".join(
            f"Host {name}\n  HostName 127.0.0.1\n  Port {port}\n  User {getpass.getuser()}\n"
            f"  IdentityFile {self.dir}/user_key\n  IdentitiesOnly yes\n  StrictHostKeyChecking no\n"
            f"  UserKnownHostsFile /dev/null\n  LogLevel ERROR\n" for name, port in self.ports.items()))
        (self.dir / "hosts.toml").write_text(f"""# made up
config = "run.toml"
program = "{self.dir}/program"
folder = "on host"  # below the folder of each host
directory = "tcp://127.0.0.1:*"
set = ["link.timeout=3", "run.id=it's \\$HOME"]
ssh = ["-F", "{self.dir}/ssh_config"]

[host.one]
directory = 1
planner = 1
env-reader = 1
scorer = 1
[host.two]
set = ["link.advertise=127.0.0.1"]
assembler = 1
scorer = 1
packer = 1
trainer = 1
""".replace("\\$", "$"))

    def ssh(self, *args, deadline="20"):
        return subprocess.run([SCRIPT, "hosts.toml", *args], stdin=subprocess.DEVNULL, capture_output=True, text=True,
                              timeout=harness.DEADLINE_S, cwd=self.dir, env={**os.environ, "MILLRACE_DEADLINE": deadline})

    def arguments(self, name):
        return (self.calls / name).read_text()

    def started(self):
        return sorted(each.name for each in self.calls.iterdir() if each.name not in ("ended", "signals", "starts", "told", "waiting"))

    def living(self):
        mark = f"FAKE_CALLS={self.calls}".encode()
        out = []
        for each in Path("/proc").iterdir():
            try:
                if each.name.isdigit() and mark in (each / "environ").read_bytes().split(b"\0"):
                    out.append(int(each.name))
            except OSError:
                pass
        return out

    def until(self, condition):
        end = time.monotonic() + harness.DEADLINE_S
        while not condition():
            self.assertLess(time.monotonic(), end, "nothing came")
            time.sleep(0.01)

    def end_everything(self):
        for pid in self.living():
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        self.until(lambda: all(each.with_suffix(".code").exists() for each in self.dir.glob("*/on host/*.pid")))


ON_ONE = ["directory", "env-reader-0", "planner", "scorer-0"]
ON_TWO = ["assembler-0", "packer-0", "scorer-1", "trainer-0"]


class Start(Case):
    def test_every_role_is_started_with_its_settings_and_logs_are_named(self):
        self.stand_in(waits="1")
        self.hosts()
        done = self.ssh()
        self.assertEqual((done.returncode, done.stderr), (0, ""), done.stdout)
        self.assertEqual(self.started(), sorted(ON_ONE + ON_TWO))
        for host, names in (("one", ON_ONE), ("two", ON_TWO)):
            for name in names:
                self.assertIn(f"{host}: {self.dir}/{host}/on host/{name}.log\n", done.stdout)
        scorer = self.arguments("scorer-1")
        for part in ("--config run.toml", "directory.endpoint=tcp://127.0.0.1:4711", "scorer.instances=2",
                     "env_reader.instances=1", "trainer.ranks=1", "link.advertise=127.0.0.1", "link.timeout=3", "run.id=it's $HOME"):
            self.assertIn(part, scorer)
        self.assertIn("--json summary.json", self.arguments("planner"))
        self.assertNotIn("link.advertise", self.arguments("planner"))
        for host in ("one", "two"):
            self.assertEqual((self.dir / host / "on host" / "run.toml").read_text(), "made = 'up'\n")

    def test_processes_outlive_the_ssh_session(self):
        self.stand_in(waits="1")
        self.hosts()
        self.assertEqual(self.ssh().returncode, 0)
        self.assertEqual(len(self.living()), 8)

    def test_a_second_start_is_refused(self):
        self.stand_in(waits="1")
        self.hosts()
        self.assertEqual(self.ssh("start").returncode, 0)
        done = self.ssh("start")
        self.assertEqual(done.returncode, 1)
        self.assertRegex(done.stderr, r"ssh: one: \S+ runs there already; stop it first\nssh: two: ")
        self.assertEqual(len(self.living()), 8)

    def test_a_host_that_refuses_is_named_with_the_reason_and_nothing_starts(self):
        self.host("one")
        with socket.create_server(("127.0.0.1", 0)) as closed:
            self.ports["two"] = closed.getsockname()[1]
        self.hosts()
        done = self.ssh()
        self.assertEqual(done.returncode, 1)
        self.assertRegex(done.stderr, r"ssh: two does not answer: .*Connection refused")
        self.assertIn("nothing was started", done.stderr)
        self.assertEqual(self.started(), [])

    def test_a_host_that_says_nothing_is_named_within_the_deadline(self):
        self.host("two", answers=False)
        self.hosts()
        before = time.monotonic()
        done = self.ssh(deadline="1")
        self.assertEqual(done.returncode, 1)
        self.assertIn("ssh: two does not answer", done.stderr)
        self.assertLess(time.monotonic() - before, 30)
        self.assertEqual(self.started(), [])

    def test_a_program_that_is_not_there_is_named_with_its_host(self):
        self.hosts()
        (self.dir / "program").unlink()
        done = self.ssh()
        self.assertEqual(done.returncode, 1)
        self.assertIn(f"ssh: two: {self.dir}/program is not there\n", done.stderr)

    def test_a_process_that_fails_at_once_is_shown_and_the_others_are_stopped(self):
        self.stand_in(fails="scorer-1", waits="1")
        self.hosts()
        done = self.ssh(deadline="5")
        self.assertEqual(done.returncode, 1)
        self.assertIn("scorer-1 failed (exit code 1)", done.stderr)
        self.assertIn("scorer-1 cannot go on", done.stderr)
        self.assertEqual(self.living(), [])

    def test_a_directory_that_fails_is_shown_and_nothing_else_starts(self):
        self.stand_in(fails="directory")
        self.hosts()
        done = self.ssh()
        self.assertEqual(done.returncode, 1)
        self.assertIn("directory failed (exit code 1)", done.stderr)
        self.assertEqual(self.started(), ["directory"])


class Running(Case):
    def setUp(self):
        super().setUp()
        self.stand_in(waits="1")
        self.hosts()
        self.assertEqual(self.ssh().returncode, 0)

    def test_status_lists_processes_and_asks_the_directory(self):
        os.kill(int((self.dir / "two" / "on host" / "scorer-1.pid").read_text().split()[0]), signal.SIGKILL)
        self.until((self.dir / "two" / "on host" / "scorer-1.code").exists)
        done = self.ssh("status")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertRegex(done.stdout, r"one: scorer-0 runs, pid \d+\n")
        self.assertIn("two: scorer-1 has ended, exit code 137\n", done.stdout)
        self.assertIn("asked: status --config tools.toml\n", done.stdout)

    def test_logs_of_one_process_are_shown(self):
        done = self.ssh("logs", "planner")
        self.assertEqual((done.returncode, done.stdout), (0, "planner: begins\n"))
        self.assertEqual(self.ssh("logs", "nobody").returncode, 2)

    def test_scaling_up_starts_new_names(self):
        done = self.ssh("scale", "scorer=4")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertEqual(done.stdout, "one: scorer-2 runs\ntwo: scorer-3 runs\n")
        for name in ("scorer-2", "scorer-3"):
            self.assertIn(f"--name {name} ", self.arguments(name))
            self.assertIn("directory.endpoint=tcp://127.0.0.1:4711", self.arguments(name))

    def test_scaling_down_drains_the_last_ones(self):
        done = self.ssh("scale", "scorer=1")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertEqual(done.stdout, "asked: drain scorer-1 --config tools.toml\n")

    def test_only_what_can_be_scaled_is(self):
        for what in ("trainer=2", "scorer", "scorer=0", "planner=1"):
            self.assertEqual(self.ssh("scale", what).returncode, 2)

    def test_stop_ends_the_planner_and_all_follow(self):
        done = self.ssh("stop")
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "all processes have ended\n", ""))
        self.assertEqual((self.calls / "signals").read_text(), "SIGTERM\n")
        self.assertEqual(self.living(), [])
        self.assertEqual(self.ssh("stop").returncode, 0)


class Stubborn(Case):
    def test_what_does_not_end_is_killed_and_named(self):
        self.stand_in(waits="1", hangs="packer-0")
        self.hosts()
        self.assertEqual(self.ssh().returncode, 0)
        done = self.ssh("stop", deadline="1")
        self.assertEqual(done.returncode, 1)
        self.assertEqual(done.stderr, "ssh: two: killed, since they did not end within 1 s: packer-0\n")
        self.assertEqual(self.living(), [])


class File(Case):
    """What HOSTS.toml may be."""

    def refusal(self, text):
        (self.dir / "hosts.toml").write_text(text)
        done = self.ssh()
        self.assertEqual((done.returncode, done.stdout, done.stderr.count("\n")), (2, "", 1), done.stderr)
        return done.stderr

    def test_lines_that_are_not_understood_are_named(self):
        for line in ("config", "config = run.toml", 'config = "a\\"b"', "config = 'a'", 'set = ["a", 3]', 'set = ["a"',
                     "[host]", "[host.a b]", "[[host.a]]", 'nonsense = "x"', "[host.a]\nplaner = 1"):
            number = 1 + line.count("\n")
            self.assertIn(f"hosts.toml:{number}: ", self.refusal(line + "\n"), line)

    def test_what_is_missing_is_named(self):
        self.hosts()
        text = (self.dir / "hosts.toml").read_text()
        for key in ("config", "program", "folder", "directory"):
            self.assertIn(f"{key} = ", self.refusal(re.sub(f"(?m)^{key} = \".*", "", text)))
        for role in ("planner", "directory", "scorer", "trainer"):
            self.assertIn(f" {role}: ", self.refusal(re.sub(rf"(?m)^{role} = \d+", "", text)))
        self.assertIn("planner: 1 in all", self.refusal(text + "planner = 1\n"))
        self.assertIn("stands there twice", self.refusal(text + "[host.one]\n"))
        self.assertIn("none.toml is not there", self.refusal(text.replace("run.toml", "none.toml")))

class Program(Case):
    """The program itself, on two hosts."""

    def stand_in(self, **fake):
        path = self.dir / "program"
        path.write_text(f"#!/bin/sh\nexport FAKE_CALLS='{self.calls}'\nexec '{harness.program}' \"$@\"\n")
        path.chmod(0o755)

    def config(self, pace):
        text = (ROOT / "config" / "quickstart.toml").read_text()
        (self.dir / "run.toml").write_text(f"source.pace = {pace}\n{text}")

    def test_a_run_over_ssh_gives_what_one_process_gives(self):
        self.config(0)
        self.hosts()
        done = self.ssh()
        self.assertEqual(done.returncode, 0, done.stderr)
        summary = self.dir / "one" / "on host" / "summary.json"
        self.until(summary.exists)
        alone = self.dir / "alone.json"
        self.assert_succeeds(self.run_millrace("run", "run.toml", "--set", "trainer.ranks=1", "--json", alone))
        there, here = (json.loads(path.read_text()) for path in (summary, alone))
        self.assertEqual((there["grid_hash"], there["ledger"]), (here["grid_hash"], here["ledger"]))

    def test_a_stage_grows_shrinks_and_the_run_stops(self):
        self.config(2)
        self.hosts()
        self.assertEqual(self.ssh().returncode, 0)
        self.until(lambda: "trainer-0" in self.ssh("status").stdout)
        self.assertEqual(self.ssh("scale", "scorer=3").returncode, 0)
        self.until(lambda: "scorer-2" in self.ssh("status").stdout)
        done = self.ssh("scale", "scorer=1")
        self.assertEqual(done.returncode, 0, done.stderr)
        done = self.ssh("stop")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.until(lambda: not self.living())


if __name__ == "__main__":
    harness.main()
