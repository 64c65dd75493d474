# SPDX-License-Identifier: Apache-2.0
"""What the tests of the whole program share: a folder of their own, and ways to run it and to judge how it ended."""
import os
import resource
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

DEADLINE_S = 120
program = ""


def main():
    """The program under test is the first argument; the others are unittest's."""
    global program
    program = os.path.abspath(sys.argv.pop(1))
    unittest.main(module="__main__", verbosity=2)


class Case(unittest.TestCase):
    def setUp(self):
        holder = tempfile.TemporaryDirectory(prefix="millrace-test-")
        self.addCleanup(holder.cleanup)
        self.dir = Path(holder.name)

    def run_millrace(self, *args, file_bytes=None, stdout=subprocess.PIPE, close_stdout=False):
        """Runs the program; file_bytes limits the size of every file that it writes."""
        def prepare():
            if file_bytes is not None:
                resource.setrlimit(resource.RLIMIT_FSIZE, (file_bytes, file_bytes))
            if close_stdout:
                os.close(1)
        return subprocess.run([program, *map(str, args)], stdin=subprocess.DEVNULL, stdout=stdout,
                              stderr=subprocess.PIPE, text=True, timeout=DEADLINE_S, cwd=self.dir,
                              preexec_fn=prepare)

    def assert_fails(self, done, code, *parts):
        """Exit code, and exactly one line on standard error, which holds all parts."""
        self.assertEqual(done.returncode, code, done.stderr)
        self.assertEqual(done.stderr.count("\n"), 1, done.stderr)
        self.assertTrue(done.stderr.startswith("millrace: "), done.stderr)
        for part in parts:
            self.assertIn(part, done.stderr)

    def assert_succeeds(self, done):
        self.assertEqual((done.returncode, done.stderr), (0, ""), done.stderr)

    def synth(self, name="s.mrec", scale="0.02", *flags, preset="quickstart"):
        path = self.dir / name
        self.assert_succeeds(self.run_millrace("synth", "--preset", preset, "--scale", scale, *flags, "-o", path))
        return path

    def assert_only(self, *names):
        """Nothing else is left in the folder."""
        self.assertEqual(sorted(os.listdir(self.dir)), sorted(names))
