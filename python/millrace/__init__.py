# SPDX-License-Identifier: Apache-2.0
"""Trainers in Python for millrace: see docs/python.md."""
from .errors import BadFormat, BadUse, Error, Lost, Refused
from .feeder import Feeder, Step, Totals
from .micro_batch import MicroBatch, RawArray, Stream
from .widening import slice_of, widen

__all__ = ["BadFormat", "BadUse", "Error", "Feeder", "Lost", "MicroBatch", "RawArray", "Refused", "Step", "Stream",
           "Totals", "slice_of", "widen"]
