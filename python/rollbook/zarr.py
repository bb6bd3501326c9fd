"""Reads arrays of a Zarr v3 tree that Rollbook wrote: chunks of whole rows, plain or packed into shards.

In: the directory of an array. Out: a numpy array, and the digest that a replay manifest binds. The digest covers every
stored byte, so the crc32c of single chunks is not checked.
"""

from __future__ import annotations

import gzip
import json
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from .digests import digest_of
from .errors import DamagedError, RollbookError

Array = npt.NDArray[Any]
_ABSENT = 2**64 - 1


@dataclass(frozen=True)
class StoredArray:
    """A whole array, with its metadata."""

    values: Array
    attributes: dict[str, Any]
    digest: str


def read_array(path: Path) -> StoredArray:
    raw, objects = _stored_bytes(path)
    metadata = json.loads(raw)
    shape = tuple(metadata["shape"])
    rows = metadata["chunk_grid"]["configuration"]["chunk_shape"][0]
    parts = [
        _decode_object(data, metadata, min(rows, shape[0] - i * rows), path) for i, data in enumerate(objects)
    ]
    dtype = _dtype_of(metadata, path)
    values = np.concatenate(parts) if parts else np.empty(shape, dtype)
    return StoredArray(values.reshape(shape), metadata.get("attributes", {}), _digest(raw, objects))


def array_digest(path: Path) -> str:
    return _digest(*_stored_bytes(path))


def _stored_bytes(path: Path) -> tuple[bytes, list[bytes]]:
    raw = _read(path / "zarr.json")
    metadata = json.loads(raw)
    shape, grid = metadata["shape"], metadata["chunk_grid"]["configuration"]["chunk_shape"]
    separator = metadata["chunk_key_encoding"].get("configuration", {}).get("separator", "/")
    rest = ["0"] * (len(shape) - 1)
    names = [separator.join(["c", str(i), *rest]) for i in range(-(-shape[0] // grid[0]))]
    return raw, [_read(path / name) for name in names]


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except FileNotFoundError as error:
        raise DamagedError(f"{path} is missing. Restore the file or write the store again.") from error


def _digest(metadata: bytes, objects: list[bytes]) -> str:
    parts = [digest_of("rollbook.zarr.metadata", metadata)]
    parts += [digest_of("rollbook.zarr.chunk", each) for each in objects]
    return digest_of("rollbook.zarr.array", b"".join(bytes.fromhex(part[7:]) for part in parts))


def _decode_object(data: bytes, metadata: dict[str, Any], rows: int, path: Path) -> Array:
    """Decodes the first `rows` rows of a stored object: a chunk, or a shard of chunks with an index at its end."""
    codecs = metadata["codecs"]
    if codecs[0]["name"] != "sharding_indexed":
        return _decode_chunk(data, codecs, metadata, path)[:rows]
    settings = codecs[0]["configuration"]
    chunk_rows = settings["chunk_shape"][0]
    count = metadata["chunk_grid"]["configuration"]["chunk_shape"][0] // chunk_rows
    index = np.frombuffer(data[-16 * count - 4 : -4], "<u8").reshape(count, 2)
    places = index[: -(-rows // chunk_rows)].tolist()
    if any(offset == _ABSENT for offset, _ in places):
        raise DamagedError(f"{path}: a shard lacks a chunk. Restore the file or write the store again.")
    parts = [_decode_chunk(data[at : at + size], settings["codecs"], metadata, path) for at, size in places]
    return np.concatenate(parts)[:rows]


def _decode_chunk(data: bytes, codecs: list[Any], metadata: dict[str, Any], path: Path) -> Array:
    for codec in reversed(codecs[1:]):
        data = _undo(codec["name"], data, path)
    row = tuple(metadata["shape"][1:])
    dtype = _dtype_of(metadata, path)
    if dtype == object:
        return _decode_texts(data).reshape(-1, *row)
    items = math.prod(row) * dtype.itemsize
    return np.frombuffer(data, dtype).reshape(len(data) // items if items else 0, *row)


def _undo(name: str, data: bytes, path: Path) -> bytes:
    if name == "crc32c":
        return data[:-4]
    if name == "gzip":
        return gzip.decompress(data)
    if name == "zstd":
        return _unzstd(data, path)
    raise RollbookError(f"{path}: the codec {name!r} is not known to this version of the package")


def _unzstd(data: bytes, path: Path) -> bytes:
    try:
        from compression import zstd  # Python 3.14

        return bytes(zstd.decompress(data))
    except ImportError:
        pass
    try:
        import zstandard
    except ImportError as error:
        raise RollbookError(
            f"{path}: reading zstd needs Python 3.14 or zstandard. Run: pip install 'rollbook[zstd]'"
        ) from error
    return bytes(zstandard.ZstdDecompressor().decompressobj().decompress(data))


def _dtype_of(metadata: dict[str, Any], path: Path) -> np.dtype[Any]:
    name = metadata["data_type"]
    if name == "string":
        return np.dtype(object)
    try:
        dtype: np.dtype[Any] = np.dtype(name)
        return dtype.newbyteorder("<")
    except TypeError:
        raise RollbookError(f"{path}: the data type {name!r} is not known to this version of the package") from None


def _decode_texts(data: bytes) -> Array:
    """Decodes `vlen-utf8`: a count, then for each text its length and its UTF-8."""
    count, at = int.from_bytes(data[:4], "little"), 4
    texts = np.empty(count, object)
    for i in range(count):
        start = at + 4
        at = start + int.from_bytes(data[at:start], "little")
        texts[i] = data[start:at].decode()
    return texts
