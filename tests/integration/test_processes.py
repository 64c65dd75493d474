#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The quickstart's recording through launch/local.sh: the same grid_hash and ledger as in one process.

    test_processes.py MILLRACE [unittest arguments]
"""
import json
import os
import subprocess
from pathlib import Path

import harness

ROOT = Path(__file__).resolve().parents[2]
CONFIG = ROOT / "config" / "quickstart.toml"
MANY = [word for scale in ("env-reader=2", "assembler=3", "scorer=3", "packer=2", "trainer=4") for word in ("--scale", scale)]


class Case(harness.Case):
    def summary(self, command):
        """Of a run that ends well."""
        out = self.dir / "summary.json"
        out.unlink(missing_ok=True)
        done = subprocess.run([*map(str, command), "--json", str(out)], stdin=subprocess.DEVNULL, capture_output=True,
                              text=True, timeout=harness.DEADLINE_S, cwd=self.dir,
                              env={**os.environ, "MILLRACE": harness.program, "TMPDIR": str(self.dir)}, check=False)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        return json.loads(out.read_text())

    def assert_same_as_in_one_process(self, *args):
        path = self.synth(scale="0.2")
        sets = ["--set", f"source.path={path}"]
        one = self.summary([harness.program, "run", CONFIG, *sets, "--set", "trainer.ranks=4"])
        many = self.summary([ROOT / "launch" / "local.sh", CONFIG, *sets, *MANY, *args])
        for key in ("grid_hash", "ledger", "episodes", "steps", "micro_batches", "sample_tokens"):
            self.assertEqual(many[key], one[key], key)
        self.assertEqual(sorted(each for each in os.listdir(self.dir) if each.startswith("millrace-")), [])


class Local(Case):
    def test_over_tcp(self):
        self.assert_same_as_in_one_process()

    def test_over_ipc(self):
        self.assert_same_as_in_one_process("--set", "link.bind=ipc")

    def test_over_ipv6(self):
        self.assert_same_as_in_one_process("--set", "link.bind=tcp://[::1]:*")

    def test_colocated(self):
        self.assert_same_as_in_one_process("--colocated")

    def test_with_keys(self):
        self.assert_succeeds(self.run_millrace("keygen", "keys"))
        self.assert_same_as_in_one_process("--set", f"curve.folder={self.dir / 'keys'}")


if __name__ == "__main__":
    harness.main()
