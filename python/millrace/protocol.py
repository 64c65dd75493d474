# SPDX-License-Identifier: Apache-2.0
"""Questions and answers as bytes: a link header (schema/link.fbs), then a host message (schema/host.fbs), then, in an
answer with a micro batch, its parts. See docs/formats.md, "Between processes"."""
from __future__ import annotations

import struct
from dataclasses import dataclass, field

import flatbuffers

from .errors import BadFormat
from .wire import FeedAnswer, FeedQuestion, HostEnvelope, LinkHeader, LinkIdentity
from .wire.FeedState import FeedState
from .wire.FeedWish import FeedWish
from .wire.HostMessage import HostMessage
from .wire.LinkKind import LinkKind

__all__ = ["Answer", "FeedState", "FeedWish", "Question", "encode", "read_answer"]

PROTOCOL = 1
HEADER_ID, ENVELOPE_ID = b"MRLH", b"MRHE"
#: What reading bytes that are no such table may raise.
UNREADABLE = (struct.error, ValueError, IndexError, TypeError, OverflowError)


@dataclass(frozen=True)
class Question:
    wish: int
    generation: int = 0
    step: int = 0
    index: int = 0
    reason: str = ""


@dataclass(frozen=True)
class Answer:
    """`parts`: of a micro batch. `refusal`: why the process does not answer at all."""

    request: int
    state: int = FeedState.Refused
    reason: str = ""
    restart: bool = False
    generation: int = 0
    step: int = 0
    digest: bytes = b""
    totals: tuple[int, int, int] = (0, 0, 0)
    micro_batches: int = 0
    folder: str = ""
    parts: list[memoryview] = field(default_factory=list, repr=False)


def encode(question: Question, request: int, run: str, rank: int, peer: int, peers: int, asker: int) -> list[bytes]:
    """The parts of a question, link header first."""
    builder = flatbuffers.Builder(256)
    reason = builder.CreateString(question.reason[:4000])
    FeedQuestion.Start(builder)
    FeedQuestion.AddRank(builder, rank)
    FeedQuestion.AddPeer(builder, peer)
    FeedQuestion.AddPeers(builder, peers)
    FeedQuestion.AddAsker(builder, asker)
    FeedQuestion.AddWish(builder, question.wish)
    FeedQuestion.AddGeneration(builder, question.generation)
    FeedQuestion.AddStep(builder, question.step)
    FeedQuestion.AddIndex(builder, question.index)
    FeedQuestion.AddReason(builder, reason)
    asked = FeedQuestion.End(builder)
    HostEnvelope.Start(builder)
    HostEnvelope.AddMessageType(builder, HostMessage.FeedQuestion)
    HostEnvelope.AddMessage(builder, asked)
    builder.Finish(HostEnvelope.End(builder), ENVELOPE_ID)
    return [_header(request, run), bytes(builder.Output())]


def _header(request: int, run: str) -> bytes:
    builder = flatbuffers.Builder(128)
    name = builder.CreateString(run)
    LinkIdentity.Start(builder)
    LinkIdentity.AddRun(builder, name)
    identity = LinkIdentity.End(builder)
    LinkHeader.Start(builder)
    LinkHeader.AddVersion(builder, PROTOCOL)
    LinkHeader.AddKind(builder, LinkKind.Request)
    LinkHeader.AddParts(builder, 1)
    if run:
        LinkHeader.AddIdentity(builder, identity)
    LinkHeader.AddRequest(builder, request)
    builder.Finish(LinkHeader.End(builder), HEADER_ID)
    return bytes(builder.Output())


def _text(value: bytes | None) -> str:
    return (value or b"").decode(errors="replace")


def read_answer(parts: list[memoryview]) -> Answer:
    """From all parts of a message."""
    try:
        return _read(parts)
    except UNREADABLE as why:
        raise BadFormat(f"an answer that is none: {why}") from None


def _read(parts: list[memoryview]) -> Answer:
    if bytes(parts[0][4:8]) != HEADER_ID:
        raise ValueError("it does not begin with a link header")
    header = LinkHeader.LinkHeader.GetRootAs(parts[0])
    if header.Version() != PROTOCOL:
        raise ValueError(f"link protocol version {header.Version()}, this side speaks {PROTOCOL}")
    if header.Kind() == LinkKind.Refusal:
        return Answer(request=0, reason=_text(header.Reason()))
    if header.Kind() != LinkKind.Reply or header.Parts() != len(parts) - 1:
        raise ValueError(f"kind {header.Kind()} with {len(parts) - 1} parts")
    if header.Reason():
        return Answer(request=header.Request(), reason=_text(header.Reason()))
    if len(parts) < 2 or bytes(parts[1][4:8]) != ENVELOPE_ID:
        raise ValueError("there is no host message in it")
    envelope = HostEnvelope.HostEnvelope.GetRootAs(parts[1])
    if envelope.MessageType() != HostMessage.FeedAnswer or envelope.Message() is None:
        raise ValueError(f"host message {envelope.MessageType()} is no answer to a trainer")
    body = FeedAnswer.FeedAnswer()
    body.Init(envelope.Message().Bytes, envelope.Message().Pos)
    digest = body.Digest()
    return Answer(request=header.Request(), state=body.State(), reason=_text(body.Reason()), restart=body.Restart(),
                  generation=body.Generation(), step=body.Step(),
                  digest=bytes(digest.Bytes()) if digest else b"",
                  totals=(body.RlTokens(), body.CeTokens(), body.RefKlTokens()), micro_batches=body.MicroBatches(),
                  folder=_text(body.Folder()), parts=parts[2:])
