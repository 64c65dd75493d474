#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How far the parameters of two dumps are from each other: compare_parameters.py DUMP DUMP STEP

Prints max|a - b| / max|a| over all tensors that the policy saved after STEP (docs/formats.md, "Tensor dumps").
"""
import json
import struct
import sys
from pathlib import Path


def tensors(dump, step):
    """Every float64 tensor of that step, as tuples."""
    out = {}
    for file in sorted(Path(dump, f"step-{step:06}", "parameters").rglob("*.safetensors")):
        raw = file.read_bytes()
        size = struct.unpack_from("<Q", raw)[0]
        header = json.loads(raw[8:8 + size])
        for name, entry in header.items():
            if name != "__metadata__":
                begin, end = entry["data_offsets"]
                assert entry["dtype"] == "F64", entry
                out[file.name, name] = struct.unpack(f"<{(end - begin) // 8}d", raw[8 + size + begin:8 + size + end])
    assert out, f"{dump}: no parameters of step {step}"
    return out


def distance(one, other, step, other_step=None):
    a, b = tensors(one, step), tensors(other, other_step or step)
    assert a.keys() == b.keys() and all(len(a[k]) == len(b[k]) for k in a), "other tensors"
    largest = max(abs(x) for values in a.values() for x in values)
    apart = max(abs(x - y) for k in a for x, y in zip(a[k], b[k]))
    return apart / largest if largest > 0 else apart


if __name__ == "__main__":
    print(distance(sys.argv[1], sys.argv[2], int(sys.argv[3])))
