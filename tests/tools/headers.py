#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks that every header compiles alone, and that every source includes its own header first.

A header that some compiled source includes before anything else is proven by the build itself. Only
the others are compiled here, with the flags of a source nearby. Usage: headers.py ROOT BUILD
"""
import json
import os
import re
import shlex
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

FOLDERS = ["runtime", "schema", "transport", "actors", "config", "launch", "tests", "bench"]
INCLUDE = re.compile(r'^\s*#\s*include\s*[<"]([^>"]+)[>"]', re.MULTILINE)


def first_include(source):
    found = INCLUDE.search(source.read_text())
    return found.group(1) if found else None


def flags_for(header, commands):
    """The compiler and flags of the source that shares most leading folders with the header."""
    def shared(source):
        return len(os.path.commonpath([source.parent, header.parent]).split("/"))
    source = max(commands, key=lambda s: (shared(s), s.as_posix()))
    words = shlex.split(commands[source])
    if os.path.basename(words[0]) == "ccache":
        words = words[1:]
    return words[:words.index("-o")]


def compile_alone(root, header, commands):
    with tempfile.NamedTemporaryFile("w", suffix=".cpp") as unit:
        unit.write(f'#include "{header.relative_to(root).as_posix()}"\n')
        unit.flush()
        run = subprocess.run(flags_for(header, commands) + ["-O0", "-fsyntax-only", unit.name],
                             capture_output=True, text=True)
    return run.stderr if run.returncode else None


def main():
    root, build = Path(sys.argv[1]).resolve(), Path(sys.argv[2])
    commands = {Path(c["file"]): c["command"] for c in json.loads((build / "compile_commands.json").read_text())}
    wrong, proven = [], set()
    for source in commands:
        first = first_include(source)
        own = source.with_suffix(".hpp")
        if own.is_file() and first != own.relative_to(root).as_posix():
            wrong.append(f"{source.relative_to(root)}: its own header must be its first include")
        if first:
            proven.add(root / first)
    headers = [p for folder in FOLDERS for p in sorted((root / folder).rglob("*.hpp"))]
    left = [h for h in headers if h not in proven]
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        for header, output in zip(left, pool.map(lambda h: compile_alone(root, h, commands), left)):
            if output:
                wrong.append(f"{header.relative_to(root)} does not compile alone:\n{output}")
    print("\n".join(wrong))
    print(f"{len(headers)} headers, {len(left)} of them compiled here, {len(wrong)} wrong")
    return 1 if wrong or not headers else 0


sys.exit(main())
