# SPDX-License-Identifier: Apache-2.0
"""A micro batch as it came off the wire: samples joined into one sequence (schema/micro_batch.fbs). Its arrays are
views of the received bytes; nothing is copied, and nothing can be written."""
from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from . import widening
from .errors import BadFormat
from .protocol import UNREADABLE
from .wire.Array import Array
from .wire.DType import DType
from .wire.MicroBatch import MicroBatch as Wire
from .wire.Stream import Stream as WireStream

#: Name and numpy's type of each wire.DType. numpy has no bfloat16: its bits are uint16.
DTYPES: dict[int, tuple[str, np.dtype]] = {
    DType.Bool: ("bool", np.dtype(np.bool_)), DType.UInt8: ("uint8", np.dtype("u1")),
    DType.Int16: ("int16", np.dtype("<i2")), DType.Int32: ("int32", np.dtype("<i4")),
    DType.Int64: ("int64", np.dtype("<i8")), DType.Float16: ("float16", np.dtype("<f2")),
    DType.BFloat16: ("bfloat16", np.dtype("<u2")), DType.Float32: ("float32", np.dtype("<f4")),
    DType.Float64: ("float64", np.dtype("<f8"))}


@dataclass(frozen=True)
class Stream:
    """A float32 per-token stream: each sequence is encoded by itself (wire.StreamEncoding)."""

    encodings: np.ndarray  #: uint8 [S]
    values: np.ndarray  #: float32, of one sequence after the other


@dataclass(frozen=True)
class RawArray:
    """An array that is not one value a token, in `pieces` (memoryviews) one after the other."""

    name: str
    dtype: str  #: numpy's name, or "bfloat16"
    shape: tuple[int, ...]
    pieces: tuple[memoryview, ...]

    @property
    def row_bytes(self) -> int:
        return sum(piece.nbytes for piece in self.pieces) // self.shape[0] if self.shape[0] else 0

    def numpy(self) -> np.ndarray:
        """A view if it is of one piece, else a copy. bfloat16: its bits as uint16."""
        dtype = next(each for name, each in DTYPES.values() if name == self.dtype)
        if len(self.pieces) == 1:
            return np.frombuffer(self.pieces[0], dtype).reshape(self.shape)
        out = np.frombuffer(b"".join(self.pieces), dtype)
        return out.reshape(self.shape)


class MicroBatch:
    """T tokens in S sequences, and `padding` more after them that belong to the last sequence.

    Errors: BadFormat, if its bytes do not add up.
    """

    def __init__(self, parts: list[memoryview]) -> None:
        self._parts = parts
        try:
            if bytes(parts[0][4:8]) != b"MRMB":
                raise ValueError("its first part is no MicroBatch")
            self._wire = Wire.GetRootAs(parts[0])
            self.step: int = self._wire.Step()
            self.rank: int = self._wire.Rank()
            self.index: int = self._wire.Index()
        except UNREADABLE as why:
            raise BadFormat(f"a micro batch that is none: {why}") from None
        self._read(self._read_all)
        widening.check(self)

    def __repr__(self) -> str:
        return (f"MicroBatch(step={self.step}, rank={self.rank}, index={self.index}, tokens={self.tokens}, "
                f"padding={self.padding}, sequences={self.sequences})")

    def _read(self, how: Callable[[], None]) -> None:
        try:
            how()
        except UNREADABLE as why:
            raise BadFormat(f"{self.place}: {why}") from None

    def _read_all(self) -> None:
        wire = self._wire
        self.dummy: bool = wire.Dummy()  #: filler: nothing in it trains
        self.padding: int = wire.Padding()
        self.input_ids = _vector(wire.InputIdsAsNumpy(), np.int32)  #: int32 [T]
        self.flags = _vector(wire.FlagsAsNumpy(), np.uint8)  #: uint8 [T], bits of wire.TokenFlag
        self.sequence_lengths = _vector(wire.SequenceLengthsAsNumpy(), np.uint32)  #: [S], without the padding
        self.sequence_envs = _vector(wire.SequenceEnvsAsNumpy(), np.uint32)  #: [S], into _names
        self._names = [(wire.EnvNames(i) or b"").decode() for i in range(wire.EnvNamesLength())]
        self.inference_logprobs = _stream(wire.InferenceLogprobs())
        self.temperatures = _stream(wire.Temperatures())
        self.advantages = _stream(wire.Advantages())
        self.ref_logprobs = _stream(wire.RefLogprobs())
        self.rl_weights = _stream(wire.RlWeights())
        self.ce_weights = _stream(wire.CeWeights())
        self.ref_kl_weights = _stream(wire.RefKlWeights())
        self.mm_token_type_ids = None if wire.MmTokenTypeIdsIsNone() else _vector(wire.MmTokenTypeIdsAsNumpy(),
                                                                                  np.uint8)  #: uint8 [T]
        self.routed_experts = self._array(wire.RoutedExperts())
        self.mm_kwargs = [self._array(wire.MmKwargs(i)) for i in range(wire.MmKwargsLength())]
        self.kept_counts = self._array(wire.KeptCounts())
        self.kept_ids = self._array(wire.KeptIds())

    def _array(self, wire: Array | None) -> RawArray | None:
        if wire is None:
            return None
        if wire.Dtype() not in DTYPES:
            raise ValueError(f"array dtype {wire.Dtype()} is unknown")
        name, dtype = DTYPES[wire.Dtype()]
        shape = tuple(int(wire.Shape(i)) for i in range(wire.ShapeLength()))
        first, count = wire.FirstPart(), wire.Parts()
        if not shape or first + count > len(self._parts):
            raise ValueError(f"an array of shape {shape} in parts {first} to {first + count} of {len(self._parts)}")
        pieces = tuple(self._parts[first:first + count])
        wanted = dtype.itemsize
        for dimension in shape:
            wanted *= dimension
        if sum(piece.nbytes for piece in pieces) != wanted:
            raise ValueError(f"an array of shape {shape} and {name} in {sum(piece.nbytes for piece in pieces)} bytes")
        return RawArray((wire.Name() or b"").decode(), name, shape, pieces)

    @property
    def place(self) -> str:
        """For messages."""
        return f"step {self.step}, rank {self.rank}, micro batch {self.index}"

    @property
    def tokens(self) -> int:
        """T, without padding."""
        return len(self.input_ids)

    @property
    def sequences(self) -> int:
        return len(self.sequence_lengths)

    @cached_property
    def env_names(self) -> list[str]:
        """[S]."""
        return [self._names[env] for env in self.sequence_envs]

    @property
    def nbytes(self) -> int:
        """Of all parts."""
        return sum(part.nbytes for part in self._parts)

    def widen(self, *, torch: bool = False) -> dict[str, Any]:
        return widening.widen(self, torch=torch)

    def slice(self, part: int, parts: int, *, torch: bool = False) -> dict[str, Any]:
        """Slice number `part` of `parts` of equal length of widen(): see slice_of()."""
        return widening.slice_of(self.widen(torch=torch), part, parts)

    def torch(self) -> dict[str, Any]:
        return self.widen(torch=True)


def _vector(found: Any, dtype: type) -> np.ndarray:
    return np.empty(0, dtype) if isinstance(found, int) else found


def _stream(wire: WireStream | None) -> Stream | None:
    if wire is None:
        return None
    return Stream(_vector(wire.EncodingsAsNumpy(), np.uint8), _vector(wire.ValuesAsNumpy(), np.float32))
