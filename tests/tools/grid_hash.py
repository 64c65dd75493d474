#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Recomputes grid_hash from a folder of dumped tensors: grid_hash.py DIR. See docs/formats.md, "Content digest"."""
import json, pathlib, struct, sys
import xxhash  # Debian: python3-xxhash

DTYPES = {"BOOL": "bool", "U8": "uint8", "I16": "int16", "I32": "int32", "I64": "int64",
          "F16": "float16", "BF16": "bfloat16", "F32": "float32", "F64": "float64"}
ALWAYS = ["input_ids", "loss_mask", "advantages", "inference_logprobs", "position_ids", "temperatures",
          "sequence_lengths", "seq_lens"]
NULLABLE = ["ref_logprobs", "rl_weights", "ce_weights", "ref_kl_weights", "routed_experts", "mm_kwargs",
            "mm_token_type_ids"]
WHERE_PRESENT = ["kept_counts", "kept_ids"]  # absent: no item

def text(value):
    return struct.pack("<I", len(value.encode())) + value.encode()

def shape(dims):
    count = 1
    for dim in dims:
        count *= dim
    return struct.pack("<I", len(dims)) + struct.pack(f"<{len(dims) + 1}Q", *dims, count)

def batch_digest(file):
    raw = file.read_bytes()
    size = struct.unpack_from("<Q", raw)[0]
    header = json.loads(raw[8:8 + size])
    about = header.pop("__metadata__")
    rank, index, envs = int(about["rank"]), int(about["index"]), json.loads(about["env_names"])
    out = xxhash.xxh3_128(struct.pack("<II", rank, index))
    def item(name):
        if name not in header:
            return out.update(text(name) + text("absent"))
        at, (begin, end) = header[name], header[name]["data_offsets"]
        out.update(text(name) + text(DTYPES[at["dtype"]]) + shape(at["shape"]))
        out.update(raw[8 + size + begin:8 + size + end])
    for name in ALWAYS:
        item(name)
    out.update(text("env_names") + text("string") + shape([len(envs)]) + b"".join(map(text, envs)))
    out.update(text("padding") + text("int64") + shape([]) + struct.pack("<q", int(about["padding"])))
    for name in NULLABLE:
        images = sorted(key for key in header if key.startswith("mm_kwargs.")) if name == "mm_kwargs" else []
        for key in images or [name]:
            item(key)
    for name in WHERE_PRESENT:
        if name in header:
            item(name)
    return int(about["step"]), rank, index, out.digest()

def grid_hash(folder):
    out = xxhash.xxh3_128()
    for step, rank, index, digest in sorted(map(batch_digest, pathlib.Path(folder).rglob("mb-*.safetensors"))):
        out.update(struct.pack("<QII", step, rank, index) + digest)
    return out.hexdigest()

if __name__ == "__main__":
    print(grid_hash(sys.argv[1]))
