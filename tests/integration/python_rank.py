#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""A trainer in Python for test_python.py: trains nothing, and says what it gets.

    python_rank.py CONFIG RANK [options]
"""
import argparse
import json
import signal
import struct
import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "python"))
import millrace  # noqa: E402

ORDER = ("input_ids", "loss_mask", "advantages", "inference_logprobs", "position_ids", "temperatures",
         "sequence_lengths", "seq_lens", "ref_logprobs", "rl_weights", "ce_weights", "ref_kl_weights",
         "routed_experts", "mm_kwargs", "mm_token_type_ids", "kept_counts", "kept_ids")
SAFETENSORS = {"bool": "BOOL", "uint8": "U8", "int16": "I16", "int32": "I32", "int64": "I64", "float16": "F16",
               "float32": "F32", "float64": "F64"}


def say(*words):
    print(*words, flush=True)


def write(batch, arrays, folder):
    """A file as `millrace run --dump` writes it, from widened arrays."""
    tensors = []
    for name in ORDER:
        value = arrays[name]
        if isinstance(value, dict):
            tensors += [(f"mm_kwargs.{each}", array) for each, array in value.items()]
        elif value is not None:
            tensors.append((name, value))
    header = {"__metadata__": {"step": str(batch.step), "rank": str(batch.rank), "index": str(batch.index),
                               "padding": str(arrays["padding"]), "env_names": json.dumps(arrays["env_names"])}}
    at = 0
    for name, array in tensors:
        header[name] = {"dtype": SAFETENSORS[array.dtype.name], "shape": list(array.shape),
                        "data_offsets": [at, at + array.nbytes]}
        at += array.nbytes
    text = json.dumps(header).encode()
    file = folder / f"step-{batch.step:06}" / f"rank-{batch.rank}" / f"mb-{batch.index:03}.safetensors"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(struct.pack("<Q", len(text)) + text + b"".join(array.tobytes() for _, array in tensors))


def check_slices(batch, parts):
    """All slices together are the whole, and share its memory."""
    whole = batch.widen()
    slices = [millrace.slice_of(whole, part, parts) for part in range(parts)]
    for name in (*millrace.widening.PER_TOKEN, *millrace.widening.ROWS, "kept_ids"):
        if whole[name] is None:
            assert all(each[name] is None for each in slices), name
            continue
        axis = 1 if name in millrace.widening.PER_TOKEN else 0
        assert np.array_equal(np.concatenate([each[name] for each in slices], axis), whole[name]), name
        assert all(np.shares_memory(each[name], whole[name]) for each in slices if each[name].size), name
    assert all(np.array_equal(each["sequence_lengths"], whole["sequence_lengths"]) for each in slices)


def check_views(batch):
    """What is read off the wire is neither copied nor to be written."""
    for array in (batch.input_ids, batch.flags, batch.sequence_lengths, batch.temperatures.values):
        assert not array.flags.owndata and not array.flags.writeable
    if batch.input_ids.nbytes:
        assert np.shares_memory(batch.input_ids, np.frombuffer(batch._parts[0], np.uint8))


def train(feeder, options):
    say(f"generation {feeder.generation} resume {feeder.resume_step}")
    if feeder.resume_step:
        assert (feeder.resume_folder / "model").read_text() == f"after {feeder.resume_step}"
    for step in feeder:
        say(f"step {step.number} {step.digest} {json.dumps(step.totals)} {len(step.micro_batches)}")
        for batch in step.micro_batches:
            check_views(batch)
            if options.dump:
                write(batch, batch.widen(), options.dump)
            if options.slices:
                check_slices(batch, options.slices)
        if options.hold_at == step.number:
            say(f"holds {step.number}")
            signal.pause()
        if options.fail_at == step.number:
            raise ArithmeticError("the loss is not finite")
        feeder.trained(step)
        say(f"trained {step.number}")
        if step.checkpoint_due:
            (step.checkpoint_folder / "model").write_text(f"after {step.number}")
            feeder.durable(step)
            say(f"durable {step.number}")
    say("ended")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("config")
    parser.add_argument("rank", type=int)
    parser.add_argument("--peer", type=int, default=0)
    parser.add_argument("--endpoint")
    parser.add_argument("--set", action="append", default=[])
    parser.add_argument("--wait", type=float, default=60)
    parser.add_argument("--dump", type=Path)
    parser.add_argument("--slices", type=int, default=0)
    parser.add_argument("--hold-at", type=int)
    parser.add_argument("--fail-at", type=int)
    options = parser.parse_args()
    try:
        with millrace.Feeder(options.config, options.rank, peer=options.peer, endpoint=options.endpoint,
                             set=options.set, wait=options.wait) as feeder:
            train(feeder, options)
    except millrace.Error as why:
        print(f"{type(why).__name__}: {why}", file=sys.stderr)
        sys.exit(why.exit_code)


if __name__ == "__main__":
    main()
