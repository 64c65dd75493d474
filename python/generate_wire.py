#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes millrace/wire again from schema/*.fbs with flatc. --check: only says whether it would change."""
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
SCHEMAS = ("common.fbs", "host.fbs", "link.fbs", "micro_batch.fbs")
VERSION = "flatc version 2.0.8"
# What a trainer reads and writes; the schemas have more.
TYPES = ("Array", "Digest", "DType", "FeedAnswer", "FeedQuestion", "FeedState", "FeedWish", "HostEnvelope",
         "HostMessage", "LinkHeader", "LinkIdentity", "LinkKind", "MicroBatch", "Origin", "Stream", "StreamEncoding",
         "TokenFlag")


def generate():
    """The text of each file."""
    version = subprocess.run(["flatc", "--version"], capture_output=True, text=True, check=True).stdout.strip()
    if version != VERSION:
        sys.exit(f"generate_wire: {VERSION} is wanted, this is {version}")
    with tempfile.TemporaryDirectory() as out:
        subprocess.run(["flatc", "--python", "-o", out, *SCHEMAS], cwd=HERE.parent / "schema", check=True)
        return {f"{name}.py": "# SPDX-License-Identifier: Apache-2.0\n" +
                (Path(out) / "millrace" / "wire" / f"{name}.py").read_text() for name in TYPES}


def main():
    folder = HERE / "millrace" / "wire"
    files = generate()
    there = {path.name for path in folder.glob("*.py")} - {"__init__.py"}
    other = sorted((there ^ set(files)) | {name for name in there & set(files)
                                           if (folder / name).read_text() != files[name]})
    if sys.argv[1:] == ["--check"]:
        if other:
            sys.exit(f"these do not follow from schema/*.fbs, run python/generate_wire.py: {', '.join(other)}")
        print(f"{len(files)} files are as flatc makes them")
        return
    for name in there - set(files):
        (folder / name).unlink()
    for name, text in files.items():
        (folder / name).write_text(text)
    print(f"{len(files)} files made, {len(other)} of them changed")


if __name__ == "__main__":
    main()
