#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Reads the #include lines of the tree and checks who includes whom, and who may use which library.

    launch -> config -> actors -> transport -> schema -> runtime

A folder includes itself and those to its right. Nothing includes tests, bench or python but each
itself. A library's headers stand only where LIBRARIES says; one that is not listed is refused, so
that a new dependency is a decision. Usage: layering.py ROOT
"""
import re
import sys
from pathlib import Path

LAYERS = ["runtime", "schema", "transport", "actors", "config", "launch"]
TOOLS = ["tests", "bench", "python"]  # may include everything

# Headers of a library (a regular expression) and the files that may include them (another).
LIBRARIES = [
    (r"caf/", r"runtime/caf\.hpp"),
    (r"simdjson\.h", r"runtime/json\w*\.(hpp|cpp)"),
    (r"nlohmann/", r"runtime/json_out\.(hpp|cpp)"),
    (r"gloo/", r"runtime/collective/.*"),
    (r"nccl", r"runtime/collective/.*"),
    (r"cuda", r"runtime/(device|collective)/.*"),
    (r"(cub|thrust)/", r".*\.cu"),  # a part of the CUDA toolkit: scans, sorts, reductions for kernels
    (r"xxhash\.h", r"runtime/digest\.cpp"),
    (r"spdlog/", r"runtime/.*"),
    (r"fmt/", r".*"),
    (r"tl/expected\.hpp", r"runtime/result\.hpp"),
    (r"flatbuffers/", r"schema/.*"),
    (r"wire/", r"schema/.*"),  # what flatc generates from the .fbs files
    (r"zmq", r"transport/.*"),
    (r"toml\+\+/", r"config/.*"),
    (r"CLI/", r"launch/.*"),
    (r"boost/", r"tests/.*"),
    (r"benchmark/", r"bench/.*"),
    (r"stddef\.h|stdint\.h", r"actors/trainer/policy_abi\.h"),  # it is C
]
# POSIX and processor headers; the standard library's have neither a dot nor a slash.
SYSTEM = re.compile(r"[a-z_0-9]+|(sys|linux|netinet|arpa|net)/\w+\.h"
                    r"|(fcntl|unistd|ifaddrs|netdb|signal|poll|pthread|sched|dlfcn|termios|nmmintrin|immintrin)\.h")
INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]')


def check_own(root, layer, name):
    """What is wrong with including the project's file `name` from a file of `layer`."""
    if not (root / name).is_file():
        return "no such file from the root of the tree; includes are written from there"
    target = name.split("/")[0]
    if target in TOOLS:
        return None if layer == target else f"nothing but {target} includes {target}"
    if target not in LAYERS:
        return f"{target} is no layer"
    if layer in TOOLS or LAYERS.index(target) <= LAYERS.index(layer):
        return None
    return f"{layer} stands below {target}"


def check_library(path, layer, name):
    """What is wrong with including the library's header `name` from the file `path`."""
    for headers, places in LIBRARIES:
        if re.match(headers, name):
            # Tests may speak to the library that they test, but CAF has one door for all.
            if re.fullmatch(places, path) or (layer in TOOLS and headers != r"caf/"):
                return None
            return f"only {places} may include it"
    return None if SYSTEM.fullmatch(name) else "not in the table of libraries (tests/tools/layering.py)"


def main():
    root = Path(sys.argv[1])
    files, errors = 0, []
    for layer in LAYERS + TOOLS:
        for path in sorted(p for s in ("hpp", "cpp", "cu", "cuh", "h") for p in (root / layer).rglob(f"*.{s}")):
            files += 1
            here = path.relative_to(root).as_posix()
            for number, line in enumerate(path.read_text().splitlines(), 1):
                found = INCLUDE.match(line)
                if not found:
                    continue
                quote, name = found.groups()
                if quote == '"' and not name.startswith("wire/"):
                    wrong = check_own(root, layer, name)
                else:
                    wrong = check_library(here, layer, name)
                if wrong:
                    errors.append(f"{here}:{number}: includes {name}: {wrong}")
    print("\n".join(errors))
    print(f"{files} files read, {len(errors)} wrong includes")
    return 1 if errors or files == 0 else 0


sys.exit(main())
