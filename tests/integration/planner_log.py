# SPDX-License-Identifier: Apache-2.0
"""Reads STATE/planner.log (docs/formats.md, schema/log.fbs) without the program, to judge what the program says of it."""
import struct
from collections import Counter

FILE_HEADER, RECORD_HEADER = 64, 32
RECORD_MAGIC = b"\xabrecord\xbb"
NAMES = ("none", "open", "generation", "commit", "settled", "scored", "trained", "durable", "rolled_back")
STATES = ("trained", "rolled_back", "truncated", "gated", "pruned", "stale", "group_dropped", "filtered", "ineligible",
          "expired", "cancelled", "errored", "rejected", "eval", "held")


def crc32c(data, table=[]):  # pylint: disable=dangerous-default-value
    """RFC 3720."""
    if not table:
        for value in range(256):
            for _ in range(8):
                value = value >> 1 ^ (0x82F63B78 if value & 1 else 0)
            table.append(value)
    crc = 0xFFFFFFFF
    for byte in data:
        crc = crc >> 8 ^ table[(crc ^ byte) & 0xFF]
    return crc ^ 0xFFFFFFFF


def set_version(path, version):
    """Says that a file is of another format version, with a checksum that fits."""
    data = bytearray(path.read_bytes())
    struct.pack_into("<I", data, 8, version)
    struct.pack_into("<I", data, 60, crc32c(data[:60]))
    path.write_bytes(data)


class Table:
    """A FlatBuffers table."""

    def __init__(self, data, at):
        self.data = data
        self.at = at

    def place(self, slot):
        vtable = self.at - struct.unpack_from("<i", self.data, self.at)[0]
        entry = 4 + 2 * slot
        if entry >= struct.unpack_from("<H", self.data, vtable)[0]:
            return None
        offset = struct.unpack_from("<H", self.data, vtable + entry)[0]
        return self.at + offset if offset else None

    def number(self, slot, form="<Q"):
        at = self.place(slot)
        return 0 if at is None else struct.unpack_from(form, self.data, at)[0]

    def follow(self, slot):
        at = self.place(slot)
        return None if at is None else at + struct.unpack_from("<I", self.data, at)[0]

    def table(self, slot):
        return Table(self.data, self.follow(slot))

    def bytes(self, slot):
        """A string, or a vector of bytes."""
        at = self.follow(slot)
        if at is None:
            return b""
        size = struct.unpack_from("<I", self.data, at)[0]
        return bytes(self.data[at + 4:at + 4 + size])

    def tables(self, slot):
        at = self.follow(slot)
        for i in range(0 if at is None else struct.unpack_from("<I", self.data, at)[0]):
            entry = at + 4 + 4 * i
            yield Table(self.data, entry + struct.unpack_from("<I", self.data, entry)[0])


def records(path):
    """(name, table) of each whole record."""
    data = path.read_bytes()
    at = FILE_HEADER
    while at + RECORD_HEADER <= len(data):
        magic, _, parts, size = struct.unpack_from("<8sIIQ", data, at)
        if magic != RECORD_MAGIC:
            raise ValueError(f"{path}: no record at {at} of {len(data)}")
        body = at + RECORD_HEADER
        at = body + size
        if at > len(data):
            return  # torn
        first = body + -(-(8 * parts) // 16) * 16
        part = memoryview(data)[first:first + struct.unpack_from("<Q", data, body)[0]]
        record = Table(part, struct.unpack_from("<I", part, 0)[0])
        yield NAMES[record.number(0, "<B")], record.table(1)


def groups_of(table, slot):
    """{(ordinal, source): states of its episodes}; a group that stands there twice is an error."""
    out = {}
    for group in table.tables(slot):
        place = struct.unpack_from("<QI", group.data, group.place(0))
        if place in out:
            raise ValueError(f"group {place} stands twice in a record")
        out[place] = [STATES[number] for number in group.bytes(2)]
    return out


class PlannerLog:
    """What a log comes to."""

    def __init__(self, path):
        self.counts = Counter()
        self.opens = []        # (run, epoch)
        self.generations = []  # (generation, next)
        self.commits = {}      # by step: its groups; of those that hold
        self.lost = []         # groups of steps that had been trained and were rolled back
        self.settled = []      # groups of each record
        self.trained = self.durable = 0
        self.rolled_back = []  # (first, last, trained)
        for name, table in records(path):
            self.counts[name] += 1
            getattr(self, "take_" + name)(table)

    def take_open(self, table):
        self.opens.append((table.bytes(0).decode(), table.number(2)))

    def take_generation(self, table):
        self.generations.append((table.number(0), table.number(1)))

    def take_commit(self, table):
        step = table.number(0)
        if step != len(self.commits) + 1:
            raise ValueError(f"step {step} is committed after step {len(self.commits)}")
        self.commits[step] = groups_of(table, 3)

    def take_settled(self, table):
        self.settled.append(groups_of(table, 0))

    def take_scored(self, table):
        pass

    def take_trained(self, table):
        step = table.number(0)
        if step > self.trained + 1 or step not in self.commits:
            raise ValueError(f"step {step} of {len(self.commits)} is trained after step {self.trained}")
        self.trained = max(self.trained, step)  # a job that started again trains some again

    def take_durable(self, table):
        step = table.number(0)
        if not self.durable <= step <= self.trained:
            raise ValueError(f"step {step} is durable after {self.durable}, and step {self.trained} is the last trained")
        self.durable = step

    def take_rolled_back(self, table):
        first, last, trained = (table.number(slot) for slot in range(3))
        self.rolled_back.append((first, last, trained))
        for step in range(first, last + 1):
            groups = self.commits.pop(step)
            if step <= trained:
                self.lost.append({place: ["rolled_back" if state == "trained" else state for state in states]
                                  for place, states in groups.items()})
        self.trained = first - 1

    def all_groups(self):
        """Each with what holds, and where it stands."""
        for step, groups in self.commits.items():
            yield from ((place, states, f"step {step}") for place, states in groups.items())
        for groups in self.lost:
            yield from ((place, states, "a step that was rolled back") for place, states in groups.items())
        for groups in self.settled:
            yield from ((place, states, "settled") for place, states in groups.items())

    def problems(self):
        """Groups that stand in two places, epochs and generations that do not rise."""
        out, seen = [], {}
        for place, _, where in self.all_groups():
            if place in seen:
                out.append(f"group {place} is in {seen[place]} and in {where}")
            seen[place] = where
        for what, numbers in (("epochs", [epoch for _, epoch in self.opens]),
                              ("generations", [generation for generation, _ in self.generations])):
            if numbers != list(range(1, len(numbers) + 1)):
                out.append(f"{what} are {numbers}")
        return out

    def ledger(self):
        out = Counter(dict.fromkeys(STATES, 0))
        for _, states, _ in self.all_groups():
            out.update(states)
        return dict(out)
