#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What the planner's log and checkpoints cost a run: the same run with its state folder on disk, on tmpfs, without fsync.

    log_overhead.py MILLRACE RECORDING [ROUNDS]

The ways take turns, ROUNDS (7) times each; compared are the medians of one call, since machines are noisy.
"""
import json
import shutil
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

CONFIG = Path(__file__).resolve().parents[1] / "config" / "quickstart.toml"
TMPFS = "/dev/shm"
WAYS = {  # by name: where the state folder is, settings
    "no fsync": (None, ["log.sync=false"]),
    "tmpfs": (TMPFS, []),
    "disk": (None, []),
    "disk, a checkpoint every 5 steps": (None, ["trainer.checkpoint_every=5"]),
    "disk, and a journal": (None, ["assembler.journal=true"]),
}


def seconds(program, recording, where, sets):
    with tempfile.TemporaryDirectory(prefix="log-overhead-", dir=where) as folder:
        out = Path(folder) / "summary.json"
        words = [program, "run", CONFIG, "--json", out]
        for each in (f"source.path={recording}", f"state={Path(folder) / 'state'}", *sets):
            words += ["--set", each]
        subprocess.run(list(map(str, words)), check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        return json.loads(out.read_text())["seconds"]


def main():
    if len(sys.argv) not in (3, 4):
        sys.exit(__doc__)
    program, recording = (Path(word).resolve() for word in sys.argv[1:3])
    rounds = int(sys.argv[3]) if len(sys.argv) == 4 else 7
    if shutil.disk_usage(TMPFS).free < 4 * recording.stat().st_size:
        sys.exit(f"{TMPFS} has too little space for {recording}")
    times = {name: [] for name in WAYS}
    for _ in range(rounds):
        for name, (where, sets) in WAYS.items():
            times[name].append(seconds(program, recording, where, sets))
    base = statistics.median(times["no fsync"])
    print(f"{'':36} {'median s':>9} {'smallest':>9} {'ratio':>7}")
    for name, each in times.items():
        median = statistics.median(each)
        print(f"{name:36} {median:9.3f} {min(each):9.3f} {median / base:7.2f}")


if __name__ == "__main__":
    main()
