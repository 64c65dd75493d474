# SPDX-License-Identifier: Apache-2.0
"""The connection to the process that has a rank: a thread that owns the socket, and says every second that this
process lives."""
from __future__ import annotations

import collections
import secrets
import threading
import time
from concurrent.futures import Future
from dataclasses import dataclass

import zmq
from zmq.utils.monitor import recv_monitor_message

from .errors import BadFormat, Error, Lost, Refused
from .protocol import Answer, FeedState, FeedWish, Question, encode, read_answer

BEAT = 1.0  #: s between two signs of life
WHY_LOST = {
    zmq.EVENT_CLOSED: "nobody accepts connections there",
    zmq.EVENT_CONNECT_RETRIED: "nobody accepts connections there",
    zmq.EVENT_HANDSHAKE_FAILED_AUTH: "it does not let this process's key in; add it to its `allowed` file",
    zmq.EVENT_HANDSHAKE_FAILED_NO_DETAIL: "the handshake failed: one side has keys and the other has not, or it has "
                                          "another key",
    zmq.EVENT_HANDSHAKE_FAILED_PROTOCOL: "the handshake failed: one side has keys and the other has not",
    zmq.EVENT_DISCONNECTED: "the connection was cut: the process is gone",
}


@dataclass(frozen=True)
class Place:
    """Who is asked, and as whom. With CURVE: its public key, and this side's pair."""

    endpoint: str
    run: str
    rank: int
    peer: int
    peers: int
    timeout: float  #: s without an answer after which the process counts as gone
    server_key: bytes = b""
    keys: tuple[bytes, bytes] | None = None  #: public, secret


class Client:
    """Asks; each answer comes as a Future. Once it is over (`over` says why), every question fails with that.

    Thread: any may ask; one of its own has the socket, since sockets may not be shared.
    """

    def __init__(self, place: Place) -> None:
        self.place = place
        self.over: Error | None = None  #: none while there is more to come, and after a good end
        self.ended = threading.Event()  #: the run ended well
        self.attached: Future[None] = Future()  #: the first sign of life was answered
        self._asker = secrets.randbits(64) | 1
        self._context = zmq.Context()
        self._bell = self._context.socket(zmq.PAIR)
        self._bell.bind("inproc://bell")
        self._lock = threading.Lock()
        self._queue: collections.deque[tuple[Question, Future[Answer]]] = collections.deque()
        self._closed = False
        self._thread = threading.Thread(target=self._run, name="millrace", daemon=True)
        self._thread.start()

    def ask(self, question: Question) -> Future[Answer]:
        answer: Future[Answer] = Future()
        with self._lock:
            if self._closed:
                answer.set_exception(self.over or Lost("the run is over", restart=False))
            else:
                self._queue.append((question, answer))
                self._bell.send(b"")
        return answer

    def close(self) -> None:
        """Ends the thread and the connection. Later calls do nothing."""
        with self._lock:
            if not self._closed:
                self._closed = True
                self._bell.send(b"stop")
        self._thread.join()
        if not self._context.closed:
            self._bell.close(linger=0)
            self._context.term()

    # ---- in the thread

    def _run(self) -> None:
        bell = self._context.socket(zmq.PAIR)
        bell.connect("inproc://bell")
        line = None
        try:
            line = _Line(self._context, self.place)
            self._serve(bell, line)
        except Error as why:
            self._finish(why)
        except zmq.ZMQError as why:
            self._finish(Lost(f"{self.place.endpoint}: {why}", restart=False))
        finally:
            self._finish(self.over)
            if line is not None:
                line.close()
            bell.close(linger=0)

    def _serve(self, bell: zmq.Socket, line: _Line) -> None:
        self._pending: dict[int, Future[Answer] | None] = {}
        self._number = 0
        heard = beat = time.monotonic()
        pause = min(BEAT, self.place.timeout / 4)
        for _ in range(2):  # the second one has the first one answered
            self._send(line, Question(FeedWish.Here), None)
        while True:
            now = time.monotonic()
            if now >= beat + pause:
                self._send(line, Question(FeedWish.Here), None)
                beat = now
            if now > heard + self.place.timeout:
                raise Lost(f"{self.place.endpoint}: nothing heard of the process of rank {self.place.rank} for "
                           f"{now - heard:.1f} s", restart=True)
            ready = line.wait(bell, min(beat + pause, heard + self.place.timeout) - now)
            if bell in ready and self._ring(bell, line):
                return
            why = line.lost()  # first: what came before the end of the connection counts
            for answer in line.answers():
                heard = time.monotonic()
                if self._take(answer):
                    return
            if why:
                raise Lost(f"{self.place.endpoint}: {why}", restart=True)

    def _ring(self, bell: zmq.Socket, line: _Line) -> bool:
        """Sends what is queued. True: it is closed."""
        stop = bell.recv() == b"stop"
        while True:
            with self._lock:
                if not self._queue:
                    return stop
                question, answer = self._queue.popleft()
            self._send(line, question, answer)

    def _send(self, line: _Line, question: Question, answer: Future[Answer] | None) -> None:
        self._number += 1
        self._pending[self._number] = answer
        place = self.place
        line.socket.send_multipart(encode(question, self._number, place.run, place.rank, place.peer, place.peers,
                                          self._asker), zmq.DONTWAIT)

    def _take(self, answer: Answer) -> bool:
        """True: it is over."""
        if answer.state == FeedState.Ended:
            self.ended.set()
            return True
        if answer.state == FeedState.Failed:
            raise Lost(answer.reason, restart=answer.restart)
        waits = self._pending.pop(answer.request, None)
        if answer.state == FeedState.Refused:
            why = Refused(f"{self.place.endpoint}: {answer.reason}")
            if waits is None:  # a sign of life: this process has no place there
                raise why
            waits.set_exception(why)
            return False
        if not self.attached.done():
            self.attached.set_result(None)
        self._set(waits, answer)
        return False

    @staticmethod
    def _set(waits: Future[Answer] | None, answer: Answer) -> None:
        if waits is not None:
            waits.set_result(answer)

    def _finish(self, why: Error | None) -> None:
        """Whoever waits hears of it."""
        with self._lock:
            self._closed = True
            self.over = self.over or why
            waiting = [answer for _, answer in self._queue]
            self._queue.clear()
        waiting += [answer for answer in getattr(self, "_pending", {}).values() if answer is not None]
        self._pending = {}
        over = self.over or Lost("the run is over", restart=False)
        for answer in (*waiting, self.attached):
            if answer.done():
                continue
            if self.ended.is_set() and answer is not self.attached:
                answer.set_result(Answer(request=0, state=FeedState.Ended))
            else:
                answer.set_exception(over)


class _Line:
    """A DEALER and what happens to its connection."""

    def __init__(self, context: zmq.Context, place: Place) -> None:
        self.socket = context.socket(zmq.DEALER)
        self.monitor: zmq.Socket | None = None
        try:
            # A socket that does not reconnect at all (-1) forgets, when its connection ends, what came and was not
            # read yet: the last answer, that the run is over. In an hour this one is long closed.
            for option, value in ((zmq.LINGER, 0), (zmq.SNDHWM, 0), (zmq.RCVHWM, 0), (zmq.RECONNECT_IVL, 3_600_000)):
                self.socket.setsockopt(option, value)
            self.socket.ipv6 = place.endpoint.startswith("tcp://[")
            if place.server_key:
                if place.keys is None:
                    raise Refused(f"{place.endpoint}: it has a key; this side needs keys too (curve.folder)")
                self.socket.curve_publickey, self.socket.curve_secretkey = place.keys
                self.socket.curve_serverkey = place.server_key
            self.monitor = self.socket.get_monitor_socket(
                zmq.EVENT_DISCONNECTED | zmq.EVENT_CLOSED | zmq.EVENT_CONNECT_RETRIED |
                zmq.EVENT_HANDSHAKE_FAILED_NO_DETAIL | zmq.EVENT_HANDSHAKE_FAILED_PROTOCOL |
                zmq.EVENT_HANDSHAKE_FAILED_AUTH)
            self.socket.connect(place.endpoint)
        except BaseException:
            self.close()
            raise
        self._poller = zmq.Poller()
        self._poller.register(self.socket, zmq.POLLIN)
        self._poller.register(self.monitor, zmq.POLLIN)

    def wait(self, bell: zmq.Socket, seconds: float) -> list[zmq.Socket]:
        self._poller.register(bell, zmq.POLLIN)
        return [socket for socket, _ in self._poller.poll(max(0, seconds) * 1000 + 1)]

    def answers(self) -> list[Answer]:
        """All that have come. Their parts are the received messages themselves."""
        out = []
        while self.socket.getsockopt(zmq.EVENTS) & zmq.POLLIN:
            frames = self.socket.recv_multipart(zmq.DONTWAIT, copy=False)
            try:
                out.append(read_answer([frame.buffer.toreadonly() for frame in frames]))
            except BadFormat as why:
                raise BadFormat(f"{self.socket.last_endpoint.decode()}: {why}") from None
        return out

    def lost(self) -> str | None:
        """Why the connection is no more: the first reason."""
        found = None
        while self.monitor.getsockopt(zmq.EVENTS) & zmq.POLLIN:
            event = recv_monitor_message(self.monitor)["event"]
            found = found or WHY_LOST.get(event)
        return found

    def close(self) -> None:
        if self.monitor is not None:
            self.socket.disable_monitor()
            self.monitor.close(linger=0)
        self.socket.close(linger=0)
