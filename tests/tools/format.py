#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks every source of the tree with clang-format 14, and that it says its licence in its first
lines. Usage: format.py ROOT [--fix]
"""
import subprocess
import sys
from pathlib import Path

FOLDERS = ["runtime", "schema", "transport", "actors", "config", "launch", "tests", "bench", "python", "docs"]
FORMATTED = [".hpp", ".cpp", ".cu", ".cuh"]
LICENSED = FORMATTED + [".fbs", ".sh", ".py", ".cmake"]
LICENCE = "SPDX-License-Identifier: Apache-2.0"


def main():
    root = Path(sys.argv[1])
    fix = sys.argv[2:] == ["--fix"]
    files = [p for folder in FOLDERS for p in sorted((root / folder).rglob("*")) if p.is_file()]
    sources = [p for p in files if p.suffix in FORMATTED]
    unlicensed = [p for p in files if (p.suffix in LICENSED or p.name == "CMakeLists.txt")
                  and LICENCE not in "".join(p.read_text().splitlines(True)[:3])]
    for path in unlicensed:
        print(f"{path.relative_to(root)}: its first lines lack '{LICENCE}'")
    mode = ["-i"] if fix else ["--dry-run", "-Werror", "--ferror-limit=1"]
    run = subprocess.run(["clang-format-14", *mode, *map(str, sources)])
    print(f"{len(sources)} sources" + ("" if fix else "; tests/tools/format.py . --fix formats them"))
    return 1 if unlicensed or run.returncode or not sources else 0


sys.exit(main())
