# SPDX-License-Identifier: Apache-2.0
"""A TCP proxy in front of a process, that loses what passes through it."""
import collections
import selectors
import socket
import threading


class Proxy:
    """Forwards connections to `listen` to `target` until told otherwise. All of it in one thread.

    `budget(forth)` gives for each direction of a new connection (forth: to the target) after how many bytes it ends, or
    None. It ends with the connection, or, if it `swallows`, in silence. What was on its way is lost then.
    """

    def __init__(self, listen, target, budget=lambda forth: None, swallows=False):
        self.target = target
        self.budget = budget
        self.swallows = swallows
        self.cuts = 0
        self.forwarding = True
        self.listener = socket.create_server(listen)
        self.listener.setblocking(False)
        self.address = self.listener.getsockname()
        self.selector = selectors.DefaultSelector()
        self.selector.register(self.listener, selectors.EVENT_READ)
        self.peers = {}  # socket: the other one
        self.left = {}   # socket: bytes that it may still send
        self.orders = collections.deque()  # of cut_within
        self.wake, self.waker = socket.socketpair()
        self.selector.register(self.wake, selectors.EVENT_READ)
        self.ending = False
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.thread.start()

    def stop_forwarding(self):
        """From now on nothing passes, and nobody is told."""
        self.forwarding = False

    def go_on(self):
        """What came in between is lost: connections are cut."""
        self.forwarding = True
        self.waker.send(b"c")

    def cut_within(self, budget, swallows=False):
        """Each open connection ends after as many more bytes as `budget()` says, or falls silent."""
        self.orders.append((budget, swallows))
        self.waker.send(b"b")

    def close(self):
        self.ending = True
        self.waker.send(b"e")
        self.thread.join()
        for each in (*self.peers, self.listener, self.wake, self.waker):
            each.close()

    def run(self):
        while not self.ending:
            for key, _ in self.selector.select():
                if key.fileobj is self.listener:
                    self.accept()
                elif key.fileobj is self.wake:
                    if self.wake.recv(1) == b"b":
                        self.obey(*self.orders.popleft())
                        continue
                    for each in list(self.peers):
                        self.cut(each)
                elif key.fileobj in self.peers:
                    self.pass_on(key.fileobj)

    def obey(self, budget, swallows):
        self.swallows = swallows
        for each in self.left:
            self.left[each] = max(1, budget())

    def accept(self):
        side, _ = self.listener.accept()
        try:
            other = socket.create_connection(self.target, timeout=5)
        except OSError:
            side.close()
            return
        for each, peer in ((side, other), (other, side)):
            each.settimeout(5)
            self.peers[each] = peer
            self.left[each] = self.budget(each is side)
            self.selector.register(each, selectors.EVENT_READ)

    def pass_on(self, side):
        try:
            data = side.recv(65536)
        except OSError:
            data = b""
        if not data:
            self.cut(side)
            return
        if not self.forwarding:
            return
        left = self.left[side]
        try:
            self.peers[side].sendall(data if left is None else data[:left])
        except OSError:
            self.cut(side)
            return
        if left is None or left == 0:
            return
        self.left[side] = max(0, left - len(data))
        if self.left[side] == 0:
            self.cuts += 1
            if not self.swallows:
                self.cut(side)

    def cut(self, side):
        other = self.peers.get(side)
        for each in (side, other):
            if each is not None and self.peers.pop(each, None) is not None:
                self.left.pop(each)
                self.selector.unregister(each)
                each.close()
