"""Reads a replay store (docs/reference/replay-format.md) into numpy. In: its directory. Out: columns over all segments.
Checks the digest of every array against the manifest, and the manifest against its own digest."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from .digests import digest_of
from .errors import DamagedError, RollbookError
from .zarr import array_digest, read_array

Array = npt.NDArray[Any]
_TABLES = {"id": "rollbook.replay", "version": 1}
_PADDING = {"candidate": -1, "label": np.nan}


class ReplayStore:
    """`ReplayStore("replay/router")`: the store in the state of its current manifest."""

    def __init__(self, root: str | os.PathLike[str]) -> None:
        self.root = Path(root)
        try:
            text = (self.root / "manifest.json").read_text("utf-8")
        except FileNotFoundError:
            raise RollbookError(
                f"{self.root} is not a replay store: it has no manifest.json. Write one with `rollbook replay write`."
            ) from None
        self.manifest: dict[str, Any] = _read_manifest(text, self.root)

    @property
    def digest(self) -> str:
        """Identifies the store, its rows and their order; `rollbook replay info` prints the same digest."""
        return str(self.manifest["digest"])

    @property
    def rows(self) -> dict[str, int]:
        """Number of rows of each table over all segments."""
        return dict(self.manifest["rows"])

    def columns(self, table: str) -> list[str]:
        """Names of the columns of a table."""
        paths = [path.split("/") for path in self.manifest["segments"][0]["arrays"]]
        names = [path[1] for path in paths if path[0] == table]
        if not names:
            raise KeyError(f"{self.root} has no table {table!r}. Tables: {', '.join(sorted({p[0] for p in paths}))}")
        return sorted(names)

    def column(self, table: str, name: str) -> Array:
        """One column over all segments. References count rows of the whole store; -1 stays -1."""
        parts = []
        first = dict.fromkeys(self.manifest["rows"], 0)
        for segment in self.manifest["segments"]:
            stored = self._read(segment, f"{table}/{name}")
            target = stored.attributes.get("references") or stored.attributes.get("starts")
            values = stored.values
            if target is not None:
                values = np.where(values >= 0, values + first[target], values).astype(values.dtype)
            parts.append(values)
            first = {each: first[each] + segment["rows"].get(each, 0) for each in first}
        width = max((part.shape[1] for part in parts if part.ndim == 2), default=0)
        return np.concatenate([_padded(part, width, name) for part in parts])

    def table(self, name: str) -> dict[str, Array]:
        return {column: self.column(name, column) for column in self.columns(name)}

    def dense(self) -> dict[str, Array]:
        """`q_h`: states × candidates, padded to the largest number of candidates of a state."""
        return self.table("q_h")

    def texts(self, values: Array) -> list[str | None]:
        """The texts of a column that refers to the dictionary; None for -1."""
        dictionary = self.column("dictionary", self.columns("dictionary")[0])
        return [None if value < 0 else str(dictionary[value]) for value in values.tolist()]

    def verify(self) -> int:
        """Checks every array and group of every segment; returns the number of arrays. `rollbook replay validate` also
        checks the rules of the rows."""
        count = 0
        for segment in self.manifest["segments"]:
            for path, expected in segment["arrays"].items():
                folder = self.root / segment["path"] / path
                _compare(folder, array_digest(folder), expected)
                count += 1
            for path, expected in segment["groups"].items():
                file = self.root / segment["path"] / path / "zarr.json"
                _compare(file, digest_of("rollbook.zarr.metadata", file.read_bytes()), expected)
        return count

    def _read(self, segment: dict[str, Any], path: str) -> Any:
        folder = self.root / segment["path"] / path
        expected = segment["arrays"].get(path)
        if expected is None:
            raise KeyError(f"{self.root}: the manifest lists no array {path}")
        stored = read_array(folder)
        _compare(folder, stored.digest, expected)
        return stored


def _read_manifest(text: str, root: Path) -> dict[str, Any]:
    manifest: dict[str, Any] = json.loads(text)
    if manifest.get("tables") != _TABLES:
        raise RollbookError(f"{root}: its tables are {manifest.get('tables')}; read them with {manifest.get('needs')}")
    # The file is canonical JSON. Its bytes without the digest field are the input of the digest.
    own = f'"digest":"{manifest["digest"]}",'
    actual = digest_of("rollbook.replay-manifest.v1.digest", text.replace(own, "", 1).encode())
    _compare(root / "manifest.json", actual, manifest["digest"])
    return manifest


def _compare(path: Path, actual: str, expected: str) -> None:
    if actual != expected:
        raise DamagedError(
            f"{path}: content is {actual}, the manifest says {expected}. Restore the file or write the store again."
        )


def _padded(values: Array, width: int, name: str) -> Array:
    if values.ndim != 2 or values.shape[1] == width:
        return values
    padding = _PADDING.get(name, 0)
    return np.pad(values, ((0, 0), (0, width - values.shape[1])), constant_values=padding)
