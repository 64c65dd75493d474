#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs clang-tidy 19 with the set of .clang-tidy over the sources of the program (not the tests).

A source that passed is not looked at again until it, a header of ours that it reaches or the set
changes; what passed is kept in ${XDG_CACHE_HOME:-~/.cache}/millrace/tidy.
Usage: tidy.py ROOT BUILD
"""
import hashlib
import json
import os
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

FOLDERS = ("runtime", "schema", "transport", "actors", "config", "launch")
INCLUDE = re.compile(r'^\s*#\s*include\s*"([^"]+)"', re.MULTILINE)
TIDY = "clang-tidy-19"


def reached(root, source, seen):
    """The files of ours that a source includes, itself too."""
    if source in seen or not source.is_file():
        return seen
    seen.add(source)
    for name in INCLUDE.findall(source.read_text()):
        reached(root, root / name, seen)
    return seen


def key_of(root, source, common):
    digest = hashlib.sha256(common)
    for path in sorted(reached(root, source, set())):
        digest.update(path.relative_to(root).as_posix().encode() + b"\0" + path.read_bytes() + b"\0")
    # The schema's generated headers follow from the .fbs files.
    for path in sorted((root / "schema").glob("*.fbs")):
        digest.update(path.read_bytes())
    return digest.hexdigest()


def main():
    root, build = Path(sys.argv[1]).resolve(), Path(sys.argv[2])
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "millrace" / "tidy"
    cache.mkdir(parents=True, exist_ok=True)
    version = subprocess.run([TIDY, "--version"], capture_output=True, check=True).stdout
    common = version + (root / ".clang-tidy").read_bytes()
    # nvcc's options mean nothing to clang-tidy; what a .cu file holds but for launches stands in headers.
    sources = [p for c in json.loads((build / "compile_commands.json").read_text())
               if (p := Path(c["file"])).relative_to(root).parts[0] in FOLDERS and p.suffix == ".cpp"]

    def check(source):
        passed = cache / key_of(root, source, common)
        if passed.exists():
            return "known"
        run = subprocess.run([TIDY, "-p", build, "--quiet", "--extra-arg=-w", source], capture_output=True, text=True)
        if run.returncode == 0:
            passed.touch()
            return "passed"
        print(run.stdout + run.stderr, flush=True)
        return "failed"

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        results = list(pool.map(check, sources))
    print(f"{len(sources)} sources: " + ", ".join(f"{results.count(r)} {r}" for r in ("passed", "known", "failed")))
    return 1 if "failed" in results or not sources else 0


sys.exit(main())
