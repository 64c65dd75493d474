# SPDX-License-Identifier: Apache-2.0
"""What this side needs of a run's config: the same TOML file that `millrace` reads."""
from __future__ import annotations

import os
import tomllib
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .errors import BadUse


@dataclass(frozen=True)
class Config:
    """Keys of docs/config.md; defaults are those of the program."""

    path: Path
    run: str
    state: Path | None
    ranks: int
    peers: int
    timeout: float  #: link.timeout, s
    keys: Path | None  #: curve.folder

    @staticmethod
    def read(path: str | os.PathLike[str], sets: Iterable[str] = ()) -> Config:
        """`sets`: "key=value", as `millrace --set` takes them; they win over the file."""
        file = Path(path)
        try:
            table = tomllib.loads(file.read_text())
        except OSError as why:
            raise BadUse(f"config {file}: {why.strerror}") from None
        except (tomllib.TOMLDecodeError, UnicodeDecodeError) as why:
            raise BadUse(f"config {file}: {why}") from None
        for each in sets:
            _assign(table, each)
        kind = _get(table, "trainer.kind", str, "policy")
        if kind != "external":
            raise BadUse(f"config {file}: trainer.kind is '{kind}': set it to \"external\" to train in Python "
                         "(here and there; set=(\"trainer.kind=external\",) for one run)")
        state = _get(table, "state", str, "")
        keys = _get(table, "curve.folder", str, "")
        return Config(path=file, run=_get(table, "run.id", str, "") or file.stem, state=Path(state) if state else None,
                      ranks=_get(table, "trainer.ranks", int, 1), peers=_get(table, "trainer.peers", int, 1),
                      timeout=float(_get(table, "link.timeout", (int, float), 10)),
                      keys=Path(keys) if keys else None)


def _assign(table: dict[str, Any], text: str) -> None:
    key, equals, value = text.partition("=")
    if not equals or not key.strip():
        raise BadUse(f"set '{text}': KEY=VALUE is wanted")
    try:
        given = tomllib.loads(f"value = {value}")["value"]
    except tomllib.TOMLDecodeError:
        given = value.strip()
    *sections, name = key.strip().split(".")
    for section in sections:
        table = table.setdefault(section, {})
        if not isinstance(table, dict):
            raise BadUse(f"set '{text}': {section} is no table")
    table[name] = given


def _get(table: dict[str, Any], key: str, wanted: type | tuple[type, ...], default: Any) -> Any:
    at: Any = table
    for part in key.split("."):
        if not isinstance(at, dict) or part not in at:
            return default
        at = at[part]
    if not isinstance(at, wanted) or isinstance(at, bool):
        raise BadUse(f"{key} = {at!r} is of the wrong type")
    return at
