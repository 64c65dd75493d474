# SPDX-License-Identifier: Apache-2.0
"""Micro batches at the widths that a model reads: the same names, order, values and bytes as the program's own tensors
(docs/formats.md, "Content digest"). Arrays are worked on whole; nothing here loops over tokens."""
from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from .errors import BadFormat, BadUse
from .wire.StreamEncoding import StreamEncoding
from .wire.TokenFlag import TokenFlag

if TYPE_CHECKING:
    from .micro_batch import MicroBatch, RawArray, Stream

PAD_ID = 1
MOST_TOKENS = 1 << 26  #: of a micro batch, padding included (schema/limits.hpp)
MOST_BYTES = 1 << 34  #: of a raw array, padding included
#: Streams that each micro batch has (advantages: zeros if it came without), and those that may be absent.
ALWAYS = ("inference_logprobs", "temperatures", "advantages")
NULLABLE = ("ref_logprobs", "rl_weights", "ce_weights", "ref_kl_weights")
#: Of a widened micro batch: cut along their second and along their first dimension by slice_of().
PER_TOKEN = ("input_ids", "loss_mask", "advantages", "inference_logprobs", "position_ids", "temperatures", *NULLABLE,
             "mm_token_type_ids")
ROWS = ("routed_experts", "kept_counts")


def check(batch: MicroBatch) -> None:
    """Whether lengths and encodings add up. Errors: BadFormat."""
    try:
        _check(batch)
    except ValueError as why:
        raise BadFormat(f"{batch.place}: {why}") from None


def _check(batch: MicroBatch) -> None:
    lengths = batch.sequence_lengths
    if len(lengths) == 0 or not lengths.all() or int(lengths.sum(dtype=np.uint64)) != batch.tokens:
        raise ValueError(f"{len(lengths)} sequence_lengths that sum to {lengths.sum(dtype=np.uint64)} for "
                         f"{batch.tokens} tokens")
    if batch.tokens + batch.padding > MOST_TOKENS:
        raise ValueError(f"{batch.tokens} tokens and {batch.padding} of padding, at most {MOST_TOKENS} are accepted")
    _same("flags", len(batch.flags), batch.tokens)
    if np.isin(batch.flags, (0, TokenFlag.Valued, TokenFlag.Valued | TokenFlag.Trainable), invert=True).any():
        raise ValueError("flags holds something other than 0, valued, or valued and trainable")
    _same("sequence_envs", len(batch.sequence_envs), len(lengths))
    if (batch.sequence_envs >= len(batch._names)).any():
        raise ValueError(f"sequence_envs holds {batch.sequence_envs.max()} for {len(batch._names)} names")
    if batch.inference_logprobs is None or batch.temperatures is None:
        raise ValueError("inference_logprobs or temperatures are absent")
    for name in (*ALWAYS, *NULLABLE):
        if (stream := getattr(batch, name)) is not None:
            _check_stream(batch, name, stream)
    if batch.mm_token_type_ids is not None:
        _same("mm_token_type_ids", len(batch.mm_token_type_ids), batch.tokens)
    if (experts := batch.routed_experts) is not None and (len(experts.shape) != 3 or experts.shape[0] != batch.tokens):
        raise ValueError(f"routed_experts of shape {experts.shape} for {batch.tokens} tokens")
    _check_kept(batch)
    for name in ROWS:
        array = getattr(batch, name)
        if array is not None and array.row_bytes * (batch.tokens + batch.padding) > MOST_BYTES:
            raise ValueError(f"{name} with padding is over {MOST_BYTES} bytes")


def _check_kept(batch: MicroBatch) -> None:
    counts, ids = batch.kept_counts, batch.kept_ids
    if (counts is None) != (ids is None):
        raise ValueError("of kept_counts and kept_ids there is only one")
    if counts is None or ids is None:
        return
    if counts.dtype != "int32" or ids.dtype != "int32" or counts.shape != (batch.tokens,) or len(ids.shape) != 1:
        raise ValueError(f"kept_counts {counts.dtype} {counts.shape}, kept_ids {ids.dtype} {ids.shape}")
    values = counts.numpy()
    if (values < 0).any() or int(values.sum(dtype=np.int64)) != ids.shape[0]:
        raise ValueError(f"kept_counts sum to {values.sum(dtype=np.int64)} for {ids.shape[0]} kept_ids")


def _same(name: str, got: int, want: int) -> None:
    if got != want:
        raise ValueError(f"{name} has {got} entries for {want}")


def _check_stream(batch: MicroBatch, name: str, stream: Stream) -> None:
    _same(f"the encodings of {name}", len(stream.encodings), batch.sequences)
    if (stream.encodings > StreamEncoding.Everywhere).any():
        raise ValueError(f"{name}: unknown encoding {stream.encodings.max()}")
    _same(f"the values of {name}", len(stream.values), int(_value_counts(batch, stream).sum()))


def _value_counts(batch: MicroBatch, stream: Stream) -> np.ndarray:
    """Values of each sequence on the wire: int64 [S]."""
    lengths = batch.sequence_lengths.astype(np.int64)
    starts = np.cumsum(lengths) - lengths
    valued = np.add.reduceat(_has(batch, TokenFlag.Valued), starts, dtype=np.int64)
    return np.select([stream.encodings == StreamEncoding.Tokens, stream.encodings == StreamEncoding.Valued],
                     [lengths, valued], 1)


def _has(batch: MicroBatch, flag: int) -> np.ndarray:
    return (batch.flags & flag) != 0


def widen(batch: MicroBatch, *, torch: bool = False) -> dict[str, Any]:
    """New arrays of N = tokens and padding, by name: int64, float32 and bool of shape [1, N], lengths of shape [S].
    What is absent is None. `mm_kwargs`: a dict by name. Arrays of raw bytes keep their dtype; bfloat16, which numpy has
    not, is its bits as uint16. With `torch` all of them are tensors on the same memory, and bfloat16 is itself."""
    n, padding = batch.tokens, batch.padding
    total = n + padding
    out: dict[str, Any] = {}
    out["input_ids"] = _padded(batch.input_ids, np.int64, padding, PAD_ID)
    out["loss_mask"] = _padded(_has(batch, TokenFlag.Trainable), np.bool_, padding, False)
    out["advantages"] = (np.zeros((1, total), np.float32) if batch.advantages is None
                         else _widen_stream(batch, batch.advantages, 0))
    assert batch.inference_logprobs is not None and batch.temperatures is not None  # check() has seen them
    out["inference_logprobs"] = _widen_stream(batch, batch.inference_logprobs, 0)
    lengths = batch.sequence_lengths.astype(np.int64)
    positions = np.empty((1, total), np.int64)
    positions[0, :n] = np.arange(n) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    positions[0, n:] = np.arange(padding)
    out["position_ids"] = positions
    out["temperatures"] = _widen_stream(batch, batch.temperatures, 1)
    lengths[-1] += padding
    out["sequence_lengths"], out["seq_lens"] = lengths, lengths.copy()
    out["env_names"], out["padding"] = list(batch.env_names), padding
    for name in NULLABLE:
        stream = getattr(batch, name)
        out[name] = None if stream is None else _widen_stream(batch, stream, 0)
    out["routed_experts"] = _padded_rows(batch.routed_experts, padding)
    out["mm_kwargs"] = {array.name: array.numpy() for array in batch.mm_kwargs} or None
    out["mm_token_type_ids"] = (None if batch.mm_token_type_ids is None
                                else _padded(batch.mm_token_type_ids, np.int64, padding, 0))
    out["kept_counts"] = _padded_rows(batch.kept_counts, padding)
    out["kept_ids"] = None if batch.kept_ids is None else batch.kept_ids.numpy()
    return _as_torch(batch, out) if torch else out


def _padded(values: np.ndarray, dtype: type, padding: int, pad: Any) -> np.ndarray:
    """[1, N]."""
    out = np.empty((1, len(values) + padding), dtype)
    out[0, :len(values)] = values
    out[0, len(values):] = pad
    return out


def _padded_rows(array: RawArray | None, padding: int) -> np.ndarray | None:
    if array is None:
        return None
    rows = array.numpy()
    out = np.zeros((rows.shape[0] + padding, *rows.shape[1:]), rows.dtype)
    out[:rows.shape[0]] = rows
    return out


def _widen_stream(batch: MicroBatch, stream: Stream, pad: float) -> np.ndarray:
    """[1, N]. Each kind of encoding is spread at once, over all sequences that have it."""
    out = np.empty((1, batch.tokens + batch.padding), np.float32)
    out[0, batch.tokens:] = pad
    to = out[0, :batch.tokens]
    lengths = batch.sequence_lengths.astype(np.int64)
    kinds = np.unique(stream.encodings)
    if len(kinds) == 1:
        to[:] = _spread(int(kinds[0]), stream.values, lengths, batch.flags)
        return out
    counts = _value_counts(batch, stream)
    for kind in kinds:
        sequences = stream.encodings == kind
        tokens = np.repeat(sequences, lengths)
        to[tokens] = _spread(int(kind), stream.values[np.repeat(sequences, counts)], lengths[sequences],
                             batch.flags[tokens])
    return out


def _spread(kind: int, values: np.ndarray, lengths: np.ndarray, flags: np.ndarray) -> np.ndarray:
    """Values of one kind over the tokens with these flags, in sequences of these lengths."""
    if kind == StreamEncoding.Tokens:
        return values
    if kind == StreamEncoding.Valued:
        out = np.zeros(len(flags), np.float32)
        out[(flags & TokenFlag.Valued) != 0] = values
        return out
    each = np.repeat(values, lengths)
    if kind == StreamEncoding.Everywhere:
        return each
    flag = TokenFlag.Valued if kind == StreamEncoding.OnValued else TokenFlag.Trainable
    return np.where((flags & flag) != 0, each, np.float32(0))


def slice_of(arrays: dict[str, Any], part: int, parts: int) -> dict[str, Any]:
    """Columns [part * N / parts, (part + 1) * N / parts) of a widened micro batch, for processes that share a sequence
    (context parallel). Views: nothing is copied. Positions stay those in the whole sequence; lengths, names, padding
    and images stay whole. Errors: BadUse, if N is no multiple of `parts` (pad_to_multiple_of makes it one)."""
    total = arrays["input_ids"].shape[1]
    if not 0 <= part < parts:
        raise BadUse(f"slice {part} of {parts}: 0 to {parts - 1} is wanted")
    if total % parts != 0:
        raise BadUse(f"{total} tokens cannot be cut into {parts} equal parts: set pad_to_multiple_of to a multiple of "
                     f"{parts}")
    begin, end = part * total // parts, (part + 1) * total // parts
    out = dict(arrays)
    for name in PER_TOKEN:
        if arrays[name] is not None:
            out[name] = arrays[name][:, begin:end]
    for name in ROWS:
        if arrays[name] is not None:
            out[name] = arrays[name][begin:end]
    if arrays["kept_counts"] is not None:
        before, inside = int(arrays["kept_counts"][:begin].sum()), int(arrays["kept_counts"][begin:end].sum())
        out["kept_ids"] = arrays["kept_ids"][before:before + inside]
    return out


def _as_torch(batch: MicroBatch, arrays: dict[str, Any]) -> dict[str, Any]:
    try:
        import torch
    except ImportError as why:
        raise BadUse(f"widen(torch=True): {why}") from None
    bits = {array.name for array in batch.mm_kwargs if array.dtype == "bfloat16"}

    def tensor(array: np.ndarray, is_bfloat16: bool = False) -> Any:
        if not array.flags.writeable or not array.flags.aligned:
            array = array.copy()  # torch takes no other memory
        if array.dtype == np.uint16:
            made = torch.from_numpy(array.view(np.int16))
            return made.view(torch.bfloat16) if is_bfloat16 else made
        return torch.from_numpy(array)

    out = {}
    for name, value in arrays.items():
        if isinstance(value, dict):
            out[name] = {each: tensor(array, each in bits) for each, array in value.items()}
        else:
            out[name] = tensor(value) if isinstance(value, np.ndarray) else value
    return out
