"""Reads a book: content-addressed blobs in packs (docs/reference/store.md). In: its directory. Out: blobs; each read checks the
digest. Opening reads only headers. Does not write, and needs no lock, because packs only grow."""

from __future__ import annotations

import json
import mmap
import os
import re
import struct
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Iterator

from .digests import digest_of
from .errors import DamagedError, RollbookError

_HEADER = struct.Struct("<4sHHQQ32sI")
_ALIGN = 8
_OWN_KINDS = ("rollbook.pack-header.v1", "rollbook.pack-footer.v1")
_LARGE = "rollbook.pack-large.v1"
_CONTENT = "rollbook.rollout-content.v1"


@dataclass(frozen=True)
class Blob:
    digest: str
    kind: str
    data: bytes

    def json(self) -> Any:
        return json.loads(self.data)


@dataclass(frozen=True)
class _Entry:
    digest: str
    kind: str
    start: int
    length: int


@dataclass(frozen=True)
class _Place:
    kind: str
    path: Path
    start: int
    length: int


class Book:
    """`Book(".rollbook")`. Sees the content of the packs at the time of opening."""

    def __init__(self, root: str | os.PathLike[str]) -> None:
        self.root = Path(root)
        packs = self.root / "packs"
        if not packs.is_dir():
            raise RollbookError(
                f"{self.root} is not a book: it has no folder packs/. Name the folder that `rollbook init` made,"
                " for example .rollbook in the project."
            )
        self._places: dict[str, _Place] = {}
        self._ids: dict[str, list[str]] | None = None
        for path in sorted(packs.iterdir()):
            if path.suffix in (".pack", ".open"):
                self._index(path)

    def __len__(self) -> int:
        return len(self._places)

    def __contains__(self, digest: str) -> bool:
        return digest in self._places

    def digests(self, kind: str | None = None) -> list[str]:
        """Digests in write order; only of one kind if `kind` is given."""
        return [digest for digest, place in self._places.items() if kind in (None, place.kind)]

    def read(self, digest: str) -> Blob:
        """Raises KeyError if the book has no such blob, and DamagedError if its bytes have changed."""
        if digest not in self._places:
            raise KeyError(f"{self.root} has no blob {digest}. Open the book again if it was written since.")
        place = self._places[digest]
        with open(place.path, "rb") as file:
            file.seek(place.start)
            data = file.read(place.length)
        actual = digest_of(place.kind, data)
        if actual != digest:
            raise DamagedError(
                f"{place.path}: content is {actual}, its name says {digest}. Restore the file from a backup."
            )
        return Blob(digest, place.kind, data)

    def record(self, digest: str, kind: str | None = None) -> dict[str, Any]:
        """The JSON of a sealed record."""
        blob = self.read(digest)
        if kind is not None and blob.kind != kind:
            raise RollbookError(f"{digest} is a {blob.kind}, not a {kind}")
        record: dict[str, Any] = blob.json()
        return record

    def find(self, name: str, kind: str) -> str:
        """The digest of the only blob of `kind` whose digest begins with `name` (hex digits, `sha256:` optional)."""
        start = "sha256:" + name.removeprefix("sha256:")
        every = self.digests(kind)
        found = [digest for digest in every if digest.startswith(start)]
        if len(found) == 1:
            return found[0]
        what = kind.removeprefix("rollbook.").rsplit(".", 1)[0].replace("-", " ")
        if found:
            raise RollbookError(f"{self.root}: {len(found)} records of kind {what} begin with {start}. Give more digits.")
        raise RollbookError(
            f"{self.root} has no {what} that begins with {start}. {_listed(every, what)}"
            " Open the book again if it was written since."
        )

    def rollouts(self) -> list[str]:
        """The ids of all rollouts, in the order of sealing."""
        return list(self._rollouts())

    def rollout(self, name: str) -> dict[str, Any]:
        """The sealed content of a rollout: task, calls, streams, scores, ending. `name` is its id, or a prefix of its
        digest."""
        known = self._rollouts()
        if name in known:
            digests = known[name]
            if len(digests) > 1:
                raise RollbookError(f"{self.root}: {len(digests)} rollouts are called {name}. Name one: {', '.join(digests)}.")
            return self.record(digests[0], _CONTENT)
        if re.fullmatch(r"(sha256:)?[0-9a-f]{4,64}", name):
            return self.record(self.find(name, _CONTENT), _CONTENT)
        raise RollbookError(
            f"{self.root} has no rollout {name!r}. {_listed(list(known), 'rollout')} `rollbook artifact ls` lists them."
            " Open the book again if it was written since."
        )

    def _rollouts(self) -> dict[str, list[str]]:
        """Digests by id. Read once, because an open book sees no new blobs."""
        if self._ids is None:
            self._ids = {}
            for digest in self.digests(_CONTENT):
                self._ids.setdefault(self.record(digest)["rolloutId"], []).append(digest)
        return self._ids

    def verify(self) -> int:
        """Reads every blob and returns their number. Raises DamagedError at the first changed blob.
        Does not check signatures and references: `rollbook verify` does."""
        for path in sorted((self.root / "packs").glob("*.pack")):
            _check_footer(path)
        for digest in self._places:
            self.read(digest)
        return len(self._places)

    def _index(self, path: Path) -> None:
        for entry, data in _entries(path):
            if entry.kind == _LARGE:
                large = json.loads(data[entry.start : entry.start + entry.length])
                name = f"{path.stem}.{large['digest'][7:]}.{large['kind']}"
                place = _Place(large["kind"], self.root / "large" / name, 0, large["bytes"])
                self._places.setdefault(large["digest"], place)
            elif entry.kind not in _OWN_KINDS:
                place = _Place(entry.kind, path, entry.start, entry.length)
                self._places.setdefault(entry.digest, place)


def _listed(names: list[str], what: str) -> str:
    """For example `It has 12: a, b, c, …`"""
    shown = ", ".join(name[7:19] if name.startswith("sha256:") else name for name in names[:5])
    if not names:
        return f"The book has no {what} at all."
    return f"It has {len(names)}: {shown}{', …' if len(names) > 5 else ''}."


def _entries(path: Path) -> Iterator[tuple[_Entry, mmap.mmap]]:
    """Entries with checked headers. Stops at a partial last entry, which an unsealed pack may have."""
    if path.stat().st_size == 0:
        return
    with open(path, "rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        at = 0
        while at < len(data):
            entry = _entry_at(data, at)
            if entry is None:
                if path.suffix == ".open":
                    return
                raise DamagedError(f"{path} at {at}: no entry, or its header has changed")
            yield entry, data
            at = -(-(entry.start + entry.length) // _ALIGN) * _ALIGN


def _entry_at(data: mmap.mmap, at: int) -> _Entry | None:
    if at + _HEADER.size > len(data):
        return None
    magic, version, kind_bytes, length, offset, digest, crc = _HEADER.unpack_from(data, at)
    if magic != b"RBE1" or version != 1 or offset != at or crc != zlib.crc32(data[at : at + 56]):
        return None
    start = at + -(-(_HEADER.size + kind_bytes + 1) // _ALIGN) * _ALIGN
    if start + length > len(data):
        return None
    kind = data[start - kind_bytes - 1 : start - 1].decode()
    return _Entry("sha256:" + digest.hex(), kind, start, length)


def _check_footer(path: Path) -> None:
    """Checks the last entry of a sealed pack: it counts and chains all entries before it. Padding must be zero."""
    digests: list[str] = []
    footer: Any = None
    end = 0
    for entry, data in _entries(path):
        padding = data[end : end + (-end) % _ALIGN]
        head = end + len(padding) + _HEADER.size
        padding += data[head : entry.start - len(entry.kind) - 1]
        content = data[entry.start : entry.start + entry.length]
        if any(padding) or digest_of(entry.kind, content) != entry.digest:
            raise DamagedError(f"{path} before {entry.start + entry.length}: an entry has changed")
        end = entry.start + entry.length
        footer = json.loads(content) if entry.kind == _OWN_KINDS[1] else None
        digests.append(entry.digest)
    chained = b"".join(bytes.fromhex(each[7:]) for each in digests[:-1])
    chain = digest_of("rollbook.pack-chain.v1", chained)
    if footer != {"entries": len(digests) - 1, "chain": chain}:
        raise DamagedError(f"{path}: its footer does not fit its entries")
