# SPDX-License-Identifier: Apache-2.0
"""Puts the records of a recording in another order: a record says nothing of its place (docs/formats.md)."""
import struct

FILE_HEADER = 64
RECORD_HEADER = 32
SEALED_EPISODE, GROUP_SIZE, INDEX = 2, 3, 5


def records_of(data):
    """(kind, bytes) of each, from the start."""
    at = FILE_HEADER
    while at < len(data):
        kind, _, size = struct.unpack_from("<IIQ", data, at + 8)
        yield kind, data[at:at + RECORD_HEADER + size]
        at += RECORD_HEADER + size


def interleave(path, rng=None):
    """The last episode of every group comes after all others; with `rng` the groups end in random order.

    The groups must stand in one piece each, as `millrace import` writes them: the size, then sealed episodes.
    """
    data = path.read_bytes()
    firsts, lasts, index = [], [], []
    for kind, record in records_of(data):
        if kind == GROUP_SIZE:
            group = []
            lasts.append(group)
        if kind == SEALED_EPISODE:
            firsts += group
            group[:] = [record]
        elif kind == INDEX:
            index.append(record)
        else:
            firsts.append(record)
    lasts = [record for group in lasts for record in group]
    if rng is not None:
        rng.shuffle(lasts)
    path.write_bytes(b"".join([data[:FILE_HEADER], *firsts, *lasts, *index]))
