#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Stands in for the program in tests of launch/*.sh: says what it was asked, and behaves as FAKE_... tells it.

`config CONFIG --set k=v` prints counts. `actor ROLE ...` appends its arguments to FAKE_CALLS/NAME and lives until the
planner has ended; the planner ends when all actors that it was told of in FAKE_EXPECTED ("NAME" or "NAME:TIMES") have
come, so often. FAKE_DIES="NAME:HOW:TIMES ..." ends the first starts of a process: by signal 9, or with exit code x1.
FAKE_LAST_WORDS is what it complains of then. With FAKE_LATE the first planner lets the others end, and dies;
with FAKE_LINGERS they end after the second one has come, and had said so before.
"""
import os
import signal
import sys
import time
from pathlib import Path

args = sys.argv[1:]
sets = dict(args[i + 1].split("=", 1) for i, a in enumerate(args) if a == "--set")
calls = Path(os.environ["FAKE_CALLS"])


def option(name):
    return args[args.index(name) + 1] if name in args else None


def until(condition, seconds=60):
    end = time.monotonic() + seconds
    while not condition() and time.monotonic() < end:
        time.sleep(0.01)


if args[0] == "config":
    if "bad" in args[1]:
        print("millrace: bad config", file=sys.stderr)
        sys.exit(2)
    for key in ("env_reader.instances", "assembler.instances", "scorer.instances", "packer.instances", "trainer.ranks"):
        print(f"{key} = {sets.get(key, 1)}")
    print(f"recovery.wait = {5 if 'waits' in args[1] else 0}")
    print(f'state = "{sets.get("state", "")}"')
    sys.exit(0)

if args[0] != "actor":  # a tool
    print("asked: " + " ".join(args))
    sys.exit(0)

role = args[1]
name = option("--name") or (f"trainer-{option('--rank')}" if role == "trainer" else role)
(calls / name.replace(",", "+")).write_text(" ".join(args))
ended = calls / "ended"
starts = calls / "starts"
with open(starts, "a") as log:
    log.write(name + "\n")


def times_started(who):
    return starts.read_text().split("\n").count(who)


def die():
    for each in os.environ.get("FAKE_DIES", "").split():
        who, how, times = each.split(":")
        if who == name and times_started(name) <= int(times):
            if "FAKE_LAST_WORDS" in os.environ:
                print("millrace: " + os.environ["FAKE_LAST_WORDS"], file=sys.stderr, flush=True)
            if how.startswith("x"):
                sys.exit(int(how[1:]))
            os.kill(os.getpid(), int(how))

if name == os.environ.get("FAKE_FAILS"):
    print(f"millrace: {name} cannot go on", file=sys.stderr)
    sys.exit(1)
if role == "directory":
    Path(option("--endpoint-file")).write_text(sets["directory.endpoint"].replace("*", "4711"))
if role == "directory" and os.environ.get("FAKE_DIES", "").startswith("directory"):
    until(lambda: times_started("planner") > 0)
die()
if role in ("planner", "directory,env-reader,assembler,scorer,planner,packer,trainer"):
    def stop(number, _frame):
        with open(calls / "signals", "a") as out:
            out.write(signal.Signals(number).name + "\n")
        if "FAKE_STUBBORN" not in os.environ:
            ended.touch()
            sys.exit(1)
    signal.signal(signal.SIGTERM, stop)
    signal.signal(signal.SIGINT, stop)
    print("planner: begins", flush=True)
    expected = os.environ.get("FAKE_EXPECTED", "").split()
    if "FAKE_LATE" in os.environ and times_started(name) == 2:
        expected = [each + ":2" for each in expected]
    until(lambda: all(times_started(each.split(":")[0]) >= int((each + ":1").split(":")[1]) for each in expected))
    if "FAKE_WAITS" in os.environ:
        (calls / "waiting").touch()
        until(lambda: False)
    if "FAKE_LATE" in os.environ and times_started(name) == 1:
        ended.touch()
        until(lambda: all((calls / f"{each}.gone").exists() for each in expected))
        ended.unlink()
        os.kill(os.getpid(), signal.SIGKILL)
    print("planner: ends", flush=True)
    if option("--json"):
        Path(option("--json")).write_text("{}")
    ended.touch()
    sys.exit(int(os.environ.get("FAKE_CODE", "0")))
if name == os.environ.get("FAKE_HANGS"):
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    until(lambda: False)
until(ended.exists)
if "FAKE_LATE" in os.environ:
    (calls / f"{name}.gone").touch()
    until(lambda: "FAKE_LINGERS" not in os.environ or times_started("planner") > 1)
