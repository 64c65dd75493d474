# SPDX-License-Identifier: Apache-2.0
"""What a trainer in Python reads: the committed steps of its rank, in order."""
from __future__ import annotations

import atexit
import os
import time
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, TimeoutError as FutureTimeout
from pathlib import Path
from types import TracebackType
from typing import NamedTuple

import zmq

from .client import Client, Place
from .config import Config
from .errors import BadFormat, BadUse, Error, Lost, Refused
from .micro_batch import MicroBatch
from .protocol import Answer, FeedState, FeedWish, Question

IN_FLIGHT = 8  #: micro batches that are asked for and have not come
RETRY = 0.2  #: s between two tries to reach the rank's process


class Totals(NamedTuple):
    """Tokens of each component of the loss in a step, over all ranks: what sums are divided by."""

    rl: int
    ce: int
    ref_kl: int


class Step:
    """A committed step: all ranks have agreed that they have the same one."""

    def __init__(self, feeder: Feeder, number: int, digest: str, totals: Totals, micro_batches: list[MicroBatch]):
        self.number = number
        self.digest = digest  #: over all micro batches of all ranks, 32 hex digits
        self.totals = totals
        self.micro_batches = micro_batches  #: of this rank, by index
        self._feeder = feeder
        self._save: Answer | None = None
        self._asked = False

    def __repr__(self) -> str:
        return f"Step(number={self.number}, micro_batches={len(self.micro_batches)}, totals={self.totals})"

    @property
    def checkpoint_due(self) -> bool:
        """Whether a checkpoint of it is wanted: then save, and call feeder.durable(step). The same on all ranks.
        To be asked after feeder.trained(step): it waits until the next step, or the end, is known."""
        if not self._asked:
            self._save = self._feeder._save_of(self)
            self._asked = True
        return self._save is not None

    @property
    def checkpoint_folder(self) -> Path:
        """For the files of the checkpoint that is due; made if it is not there. It is removed with the checkpoint."""
        if not self.checkpoint_due or self._save is None:
            raise BadUse(f"no checkpoint of step {self.number} is due")
        folder = Path(self._save.folder)
        folder.mkdir(parents=True, exist_ok=True)
        return folder


class Feeder:
    """The steps of a rank::

        with millrace.Feeder("run.toml", rank) as feeder:
            load(feeder.resume_step, feeder.resume_folder)
            for step in feeder:
                for batch in step.micro_batches:
                    backward(batch.torch(), step.totals)
                optimizer.step()
                feeder.trained(step)
                if step.checkpoint_due:
                    save(step.checkpoint_folder)
                    feeder.durable(step)

    Errors: millrace.Error and what it is the base of; each says in one line what is wrong, and has an exit_code.
    Thread: one, but for the sign of life that a thread of its own gives every second.
    """

    def __init__(self, config: str | os.PathLike[str], rank: int, *, peer: int = 0, endpoint: str | None = None,
                 set: Iterable[str] = (), wait: float = 60.0) -> None:
        """Attaches to the process that has the rank.

        peer: which of the trainer.peers processes that share it.
        endpoint: of that process; else STATE/trainer-RANK.endpoint says it.
        set: keys that win over the config's, "key=value", as the program was given them.
        wait: s for which that process may be missing.
        """
        self._config = Config.read(config, set)
        self.rank, self.peer, self.peers = rank, peer, self._config.peers
        if not 0 <= rank < self._config.ranks:
            raise BadUse(f"there is no rank {rank}: trainer.ranks = {self._config.ranks}")
        if not 0 <= peer < self.peers:
            raise BadUse(f"there is no peer {peer}: trainer.peers = {self.peers}")
        if endpoint is None and self._config.state is None:
            raise BadUse(f"where is rank {rank}? {self._config.path} names no state folder: set state, or give endpoint")
        self._begun: Answer | None = None
        self._news: Answer | None = None  # looked at, and not taken
        self._ask_next: Future[Answer] | None = None
        self._last = 0  # step that was handed out
        self._trained = 0
        self._client = self._attach(endpoint, wait)
        atexit.register(self.close, "the process ends")

    # ---- attaching

    def _attach(self, endpoint: str | None, wait: float) -> Client:
        until = time.monotonic() + wait
        while True:
            try:
                client = Client(self._place(endpoint))
                try:
                    client.attached.result(self._config.timeout)
                    return client
                except BaseException as why:
                    client.close()
                    if isinstance(why, FutureTimeout):
                        raise Lost(f"{client.place.endpoint}: no answer within {self._config.timeout:g} s",
                                   restart=True) from None
                    raise
            except Lost:
                if time.monotonic() + RETRY > until:
                    raise
            time.sleep(RETRY)

    def _place(self, endpoint: str | None) -> Place:
        key = ""
        if endpoint is None:
            assert self._config.state is not None
            file = self._config.state / f"trainer-{self.rank}.endpoint"
            try:
                endpoint, key, *_ = [*file.read_text().splitlines(), "", ""]
            except OSError as why:
                raise Lost(f"no process has rank {self.rank}: {file}: {why.strerror}; start `millrace run` or `millrace "
                           f"actor trainer --rank {self.rank}` with this state folder", restart=True) from None
        keys = _own_keys(self._config.keys) if self._config.keys else None
        if keys and not key and not endpoint.startswith("ipc://"):
            key = keys[0].decode()  # right where all processes share a pair
        return Place(endpoint=endpoint, run=self._config.run, rank=self.rank, peer=self.peer, peers=self.peers,
                     timeout=self._config.timeout, server_key=key.encode(), keys=keys)

    # ---- where it stands

    @property
    def generation(self) -> int:
        """How often the ranks have met. Waits until they have."""
        return self._begin().generation

    @property
    def resume_step(self) -> int:
        """The step whose checkpoint is to be loaded; 0: none. Waits until the ranks have met."""
        return self._begin().step

    @property
    def resume_folder(self) -> Path | None:
        """What was its checkpoint_folder; None if resume_step is 0."""
        begun = self._begin()
        return Path(begun.folder) if begun.step and begun.folder else None

    def _begin(self) -> Answer:
        if self._begun is None:
            news = self._take()
            if news.state == FeedState.Ended:  # there was nothing to train
                return Answer(request=0)
            if news.state != FeedState.Begin:
                raise BadFormat(f"state {news.state} before a generation has begun")
            self._begun = news
            self._last = self._trained = news.step
        return self._begun

    # ---- steps

    def __iter__(self) -> Iterator[Step]:
        return self

    def __next__(self) -> Step:
        self._begin()
        if self._last != self._trained:
            raise BadUse(f"step {self._last} is not trained: call feeder.trained(step) before the next one")
        news = self._take()
        if news.state == FeedState.Ended:
            self._news = news
            raise StopIteration
        if news.state == FeedState.Save:
            raise BadUse(f"a checkpoint of step {news.step} is due: after feeder.trained(step) look at "
                         "step.checkpoint_due, save, and call feeder.durable(step)")
        if news.state == FeedState.Begin:
            raise Lost(f"generation {news.generation} has begun without this process", restart=True)
        if news.state != FeedState.Step:
            raise BadFormat(f"state {news.state} where a step was wanted")
        step = Step(self, news.step, news.digest.hex(), Totals(*news.totals), self._fetch(news))
        self._last = step.number
        return step

    def _fetch(self, news: Answer) -> list[MicroBatch]:
        asked: list[Future[Answer]] = []
        out: list[MicroBatch] = []
        for index in range(news.micro_batches):
            while len(asked) < min(index + IN_FLIGHT, news.micro_batches):
                asked.append(self._client.ask(Question(FeedWish.MicroBatch, step=news.step, index=len(asked))))
            batch = MicroBatch(asked[index].result().parts)
            if (batch.step, batch.rank, batch.index) != (news.step, self.rank, index):
                raise BadFormat(f"{batch.place} came as step {news.step}, rank {self.rank}, micro batch {index}")
            out.append(batch)
        return out

    def trained(self, step: Step | int) -> None:
        """The step is applied. Once all peers of all ranks have said so, the next one comes."""
        number = _number(step)
        if number != self._last:
            raise BadUse(f"step {number} was not handed out last, {self._last} was")
        self._client.ask(Question(FeedWish.Trained, step=number)).result()
        self._trained = number

    def durable(self, step: Step | int) -> None:
        """A checkpoint holds all steps up to this one; what stands in its checkpoint_folder is synced to the disk."""
        number = _number(step)
        if isinstance(step, Step) and step._save is not None:
            _sync(Path(step._save.folder))
        self._client.ask(Question(FeedWish.Durable, step=number)).result()
        if self._news is not None and self._news.state == FeedState.Save and self._news.step <= number:
            self._news = None

    def _save_of(self, step: Step) -> Answer | None:
        if step.number != self._trained:
            raise BadUse(f"step {step.number} is not the last one trained: ask for checkpoint_due after "
                         "feeder.trained(step), and before the next step")
        news = self._take()
        self._news = news
        return news if news.state == FeedState.Save and news.step == step.number else None

    def _take(self) -> Answer:
        """What comes next; waits for it."""
        if self._news is not None:
            news, self._news = self._news, None
            return news
        if self._client.ended.is_set():
            return Answer(request=0, state=FeedState.Ended)
        if self._ask_next is None:
            known = self._begun.generation if self._begun else 0
            self._ask_next = self._client.ask(Question(FeedWish.Next, generation=known, step=self._last))
        news = self._ask_next.result()  # a signal may break this: then the same question goes on
        self._ask_next = None
        return news if news.state != FeedState.Noted else self._take()

    # ---- the end

    def close(self, reason: str = "it was closed") -> None:
        """Leaves. In a run that goes on, that ends the rank's generation. Later calls do nothing."""
        atexit.unregister(self.close)
        client = self._client
        if not client.ended.is_set() and client.over is None:
            try:
                client.ask(Question(FeedWish.Leave, reason=reason)).result(1)
            except (Error, FutureTimeout):
                pass  # it finds out by itself
        client.close()

    def __enter__(self) -> Feeder:
        return self

    def __exit__(self, kind: type[BaseException] | None, why: BaseException | None, _: TracebackType | None) -> None:
        self.close(f"{kind.__name__}: {why}" if kind else "it was closed")


def _number(step: Step | int) -> int:
    return step.number if isinstance(step, Step) else step


def _own_keys(folder: Path) -> tuple[bytes, bytes]:
    try:
        secret = (folder / "secret.key").read_bytes().strip()
        return zmq.curve_public(secret), secret
    except OSError as why:
        raise BadUse(f"curve.folder {folder}: {why.strerror}: {why.filename}") from None
    except (zmq.ZMQError, ValueError, TypeError):
        raise BadUse(f"curve.folder {folder}: secret.key holds no key") from None


def _sync(folder: Path) -> None:
    """Every file and folder in it, and its own name."""
    paths = [folder.parent, folder, *folder.rglob("*")] if folder.is_dir() else []
    for path in paths:
        handle = os.open(path, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


__all__ = ["Feeder", "Refused", "Step", "Totals"]
