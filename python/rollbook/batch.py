"""Reads trainer batches from a book, where every byte is checked against its digest, or from an exported file.

In: a book and the digest of a batch, or a file of `rollbook batch export` (npz, safetensors, parquet, jsonl).
Out: a Batch: provenance, flat columns (docs/reference/keep.md names them), and the same values row by row.
"""

from __future__ import annotations

import json
import math
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Iterable, Iterator

import numpy as np
import numpy.typing as npt

from .book import Book
from .errors import DamagedError, RollbookError

Array = npt.NDArray[Any]
Columns = dict[str, Array]

_BATCH = "rollbook.trainer-batch.v1"
_SHARD = "rollbook.batch-shard.v1"
_LINEAGE = "rollbook.policy-revision-lineage.v1"
_DTYPES = {"u8": "<u1", "u32": "<u4", "i32": "<i4", "f32": "<f4", "f64": "<f8"}
_TOKEN_COLUMNS = {"ids": "<u4", "logprobs": "<f4", "mask": "<u1", "turns": "<u4", "rewards": "<f4", "advantages": "<f4"}
_STEP_COLUMNS = {"chosen": "<u4", "probability": "<f8", "rewards": "<f8", "advantages": "<f8"}
_ROW_NUMBERS = {"stream": "<i8", "weight_bps": "<i8", "samples": "<i8", "reward": "<f8"}
_ROW_TEXTS = ("content", "rollout_id", "group")


@dataclass(frozen=True)
class Segment:
    """This revision sampled the tokens (or steps) start … end−1 of the row."""

    start: int
    end: int
    revision: str
    digest: str


@dataclass(frozen=True)
class Candidate:
    id: str
    probability: float | None
    """None if the probability was not logged."""
    selectable: bool


@dataclass(frozen=True)
class Step:
    chosen: int
    """Index into `candidates`."""
    probability: float
    reward: float
    advantage: float
    candidates: tuple[Candidate, ...]


@dataclass(frozen=True)
class Row:
    """One stream of one rollout. Token rows have arrays of one value per token, step rows have `steps`."""

    content: str
    stream: int
    rollout_id: str
    group: str | None
    weight_bps: int
    samples: int
    reward: float
    segments: tuple[Segment, ...]
    tokens: dict[str, Array] | None
    """ids, logprobs, mask, turns, rewards, advantages; views of the columns."""
    steps: tuple[Step, ...] | None


@dataclass(frozen=True)
class Batch:
    meta: dict[str, Any]
    """The provenance: batch, manifest, target, selection, seed, options, lineage, ledger, totals, tokens, sources."""
    columns: Columns
    """Flat columns: row r is `row_start[r]` to `row_start[r] + row_length[r]`."""

    def __post_init__(self) -> None:
        for name, actual in (("rows", len(self)), ("samples", int(self.columns["samples"].sum()))):
            expected = self.meta["totals"][name]
            if actual != expected:
                raise DamagedError(f"batch {self.digest} has {actual} {name}, its totals say {expected}")

    def __len__(self) -> int:
        return len(self.columns["content"])

    @property
    def digest(self) -> str:
        return str(self.meta["batch"])

    @property
    def level(self) -> str:
        """`token` or `step`."""
        return str(self.meta["selection"]["level"])

    def totals(self) -> dict[str, float]:
        """Totals computed from the columns. Raises DamagedError if they differ from the totals of the sealed batch."""
        found = {"rows": len(self), "samples": int(self.columns["samples"].sum())}
        sums = {
            "rewardSum": math.fsum(map(float, self.columns["rewards"])),
            "advantageSum": math.fsum(map(float, self.columns["advantages"])),
        }
        for name, value in sums.items():  # the last digits of a float sum depend on the order
            expected = self.meta["totals"][name]
            if not math.isclose(value, expected, rel_tol=1e-9, abs_tol=1e-6):
                raise DamagedError(f"batch {self.digest}: {name} is {value}, its totals say {expected}")
        return {**found, **sums}

    def rows(self) -> Iterator[Row]:
        columns, is_token = self.columns, self.level == "token"
        for r in range(len(self)):
            here = _range(columns, "row", r)
            yield Row(
                content=str(columns["content"][r]),
                stream=int(columns["stream"][r]),
                rollout_id=str(columns["rollout_id"][r]),
                group=str(columns["group"][r]) or None,
                weight_bps=int(columns["weight_bps"][r]),
                samples=int(columns["samples"][r]),
                reward=float(columns["reward"][r]),
                segments=self._segments(_range(columns, "segments", r)),
                tokens={name: columns[name][here] for name in _TOKEN_COLUMNS} if is_token else None,
                steps=None if is_token else tuple(map(self._step, range(here.start, here.stop))),
            )

    def same_as(self, other: Batch) -> bool:
        """True if every value is the same, to the bit. The order of `candidate_names` does not matter."""
        mine, others = (_comparable(each.columns) for each in (self, other))
        return mine.keys() == others.keys() and all(_same(mine[name], others[name]) for name in mine)

    def _segments(self, here: slice) -> tuple[Segment, ...]:
        starts, ends, sources = (self.columns[f"segment_{name}"][here] for name in ("start", "end", "source"))
        return tuple(
            Segment(int(start), int(end), self.meta["sources"][s]["id"], self.meta["sources"][s]["digest"])
            for start, end, s in zip(starts, ends, sources)
        )

    def _step(self, i: int) -> Step:
        columns = self.columns
        here = _range(columns, "candidates", i)
        candidates = tuple(
            Candidate(str(columns["candidate_names"][c]), None if math.isnan(p) else float(p), bool(s))
            for c, p, s in zip(
                columns["candidate_ids"][here],
                columns["candidate_probability"][here],
                columns["candidate_selectable"][here],
            )
        )
        chosen, probability, reward, advantage = (columns[name][i] for name in _STEP_COLUMNS)
        return Step(int(chosen), float(probability), float(reward), float(advantage), candidates)


def read_batch(book: Book | str | os.PathLike[str], name: str) -> Batch:
    """The batch of this digest, or digest prefix, from a book. Checks every blob."""
    book = book if isinstance(book, Book) else Book(book)
    if not book.digests(_BATCH):
        raise RollbookError(f"{book.root} has no batch yet. Cut one with `rollbook batch assemble --book {book.root}`.")
    digest = book.find(name, _BATCH)
    record = book.record(digest, _BATCH)
    kept = ("manifest", "target", "selection", "seed", "options", "lineage", "ledger", "totals", "tokens")
    known = {each["id"]: each for each in book.record(record["lineage"], _LINEAGE)["sources"]}
    sources = [known[each["revision"]["id"]] for each in record["bySource"]]
    meta = {"batch": digest, **{name: record[name] for name in kept}, "sources": sources}
    shards = [book.record(each["digest"], _SHARD) for each in record["shards"]]
    rows = [_facts_of(row, row["segments"]) for shard in shards for row in shard["rows"]]
    parts = [_shard_columns(book, shard["data"]) for shard in shards]
    lengths = [row["length"] for shard in shards for row in shard["rows"]]
    if record["selection"]["level"] == "step":
        names = list(dict.fromkeys(name for shard in shards for name in shard["data"]["candidates"]))
        number = {name: i for i, name in enumerate(names)}
        for shard, part in zip(shards, parts):
            numbers = np.array([number[name] for name in shard["data"]["candidates"]], "<u4")
            part["candidate_ids"] = numbers[part["candidate_ids"]]
    columns = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
    if record["selection"]["level"] == "step":
        _add_ranges(columns, "candidates", columns.pop("candidate_counts"))
        columns["candidate_names"] = np.array(names, dtype=str)
    return Batch(meta, {**_row_columns(rows, lengths), **columns})


def load_batch(path: str | os.PathLike[str], *, book: Book | str | os.PathLike[str] | None = None) -> Batch:
    """Reads a file of `rollbook batch export`. With `book`, compares every value with the sealed batch."""
    readers = {".npz": _load_npz, ".safetensors": _load_safetensors, ".parquet": _load_parquet, ".jsonl": _load_jsonl}
    path = Path(path)
    reader = readers.get(path.suffix)
    if reader is None:
        raise RollbookError(
            f"{path}: the ending is none of {', '.join(readers)}. Name a file that `rollbook batch export` wrote."
        )
    if not path.is_file():
        raise RollbookError(f"{path} does not exist. Write it with `rollbook batch export BATCH --format {path.suffix[1:]} --out {path}`.")
    batch = Batch(*reader(path))
    if book is not None and not batch.same_as(read_batch(book, batch.digest)):
        raise DamagedError(f"{path}: its values are not those of batch {batch.digest} in the book. Export it again.")
    return batch


def _load_npz(path: Path) -> tuple[dict[str, Any], Columns]:
    with np.load(path, allow_pickle=False) as file:
        columns = {name: file[name] for name in file.files}
    return json.loads(columns.pop("meta.json").tobytes()), columns


def _load_safetensors(path: Path) -> tuple[dict[str, Any], Columns]:
    data = path.read_bytes()
    size = int.from_bytes(data[:8], "little")
    header = json.loads(data[8 : 8 + size])
    meta = json.loads(header.pop("__metadata__")["rollbook"])
    types = {"U8": "<u1", "U32": "<u4", "I64": "<i8", "F32": "<f4", "F64": "<f8"}
    columns: Columns = {}
    for name, tensor in header.items():
        start, end = (8 + size + offset for offset in tensor["data_offsets"])
        columns[name] = np.frombuffer(data[start:end], types[tensor["dtype"]])
    for name in [name.removesuffix(".utf8") for name in columns if name.endswith(".utf8")]:
        text, at = columns.pop(f"{name}.utf8").tobytes(), columns.pop(f"{name}.offsets")
        columns[name] = np.array([text[a:b].decode() for a, b in zip(at[:-1], at[1:])], dtype=str)
    return meta, columns


def _load_jsonl(path: Path) -> tuple[dict[str, Any], Columns]:
    with open(path, encoding="utf-8") as file:
        meta, *rows = map(json.loads, file)
    sources = _source_numbers(meta)
    facts = [
        {**row, "segments": [(s["start"], s["end"], sources[s["revision"], s["digest"]]) for s in row["segments"]]}
        for row in rows
    ]
    if meta["selection"]["level"] == "token":
        columns = {name: _flat([row[name] for row in rows], dtype) for name, dtype in _TOKEN_COLUMNS.items()}
        return meta, {**_row_columns(facts, [len(row["ids"]) for row in rows]), **columns}
    steps = [step for row in rows for step in row["steps"]]
    keys = {"chosen": "chosen", "probability": "probability", "rewards": "reward", "advantages": "advantage"}
    columns = {name: np.array([step[key] for step in steps], _STEP_COLUMNS[name]) for name, key in keys.items()}
    candidates = [candidate for step in steps for candidate in step["candidates"]]
    _add_candidates(
        columns,
        [len(step["candidates"]) for step in steps],
        [each["id"] for each in candidates],
        [math.nan if each["probability"] is None else each["probability"] for each in candidates],
        [each["selectable"] for each in candidates],
    )
    return meta, {**_row_columns(facts, [len(row["steps"]) for row in rows]), **columns}


def _load_parquet(path: Path) -> tuple[dict[str, Any], Columns]:
    try:
        import pyarrow.parquet as parquet
    except ImportError as error:
        raise RollbookError(f"{path}: reading Parquet needs pyarrow. Run: pip install 'rollbook[parquet]'") from error
    table = parquet.read_table(path)
    meta = json.loads(table.schema.metadata[b"rollbook"])
    sources = _source_numbers(meta)
    value = {name: table[name].combine_chunks() for name in table.column_names}
    flat = {name: value[name].flatten() for name in value if str(value[name].type).startswith("list")}
    lengths = {name: value[name].value_lengths().to_numpy(zero_copy_only=False) for name in flat}
    columns: Columns = {
        name: np.array([text or "" for text in value[name].to_pylist()], dtype=str) for name in _ROW_TEXTS
    }
    for name, dtype in _ROW_NUMBERS.items():
        columns[name] = value[name].to_numpy(zero_copy_only=False).astype(dtype)
    _add_ranges(columns, "segments", lengths["segment_start"])
    for name in ("segment_start", "segment_end"):
        columns[name] = flat[name].to_numpy(zero_copy_only=False).astype("<i8")
    keys = zip(flat["segment_revision"].to_pylist(), flat["segment_digest"].to_pylist())
    columns["segment_source"] = np.array([sources[key] for key in keys], "<i8")
    is_token = meta["selection"]["level"] == "token"
    types = _TOKEN_COLUMNS if is_token else _STEP_COLUMNS
    _add_ranges(columns, "row", lengths["rewards"])
    for name, dtype in types.items():
        columns[name] = flat[name].to_numpy(zero_copy_only=False).astype(dtype)
    if not is_token:
        counts = flat["candidate_ids"].value_lengths().to_pylist()
        ids, probability, selectable = (
            flat[f"candidate_{name}"].flatten() for name in ("ids", "probability", "selectable")
        )
        logged = [math.nan if each is None else each for each in probability.to_pylist()]
        _add_candidates(columns, counts, ids.to_pylist(), logged, selectable.to_pylist())
    return meta, columns


def _shard_columns(book: Book, data: dict[str, Any]) -> Columns:
    names = {
        "candidateCounts": "candidate_counts",
        "candidateIds": "candidate_ids",
        "candidateProbability": "candidate_probability",
        "candidateSelectable": "candidate_selectable",
    }
    return {names.get(name, name): _read_column(book, each) for name, each in data["columns"].items()}


def _read_column(book: Book, column: dict[str, Any]) -> Array:
    blob = book.read(column["digest"])
    values = np.frombuffer(blob.data, _DTYPES[column["dtype"]])
    if len(values) != column["length"]:
        raise DamagedError(f"column {column['digest']} has {len(values)} values, not {column['length']}")
    return values


def _facts_of(row: dict[str, Any], segments: Iterable[Any]) -> dict[str, Any]:
    return {
        "content": row["content"],
        "rollout_id": row["rolloutId"],
        "group": row.get("group"),
        "stream": row["stream"],
        "weight_bps": row["weightBps"],
        "samples": row["samples"],
        "reward": row["reward"],
        "segments": segments,
    }


def _row_columns(rows: list[dict[str, Any]], lengths: list[int]) -> Columns:
    columns: Columns = {name: np.array([row[name] or "" for row in rows], dtype=str) for name in _ROW_TEXTS}
    for name, dtype in _ROW_NUMBERS.items():
        columns[name] = np.array([row[name] for row in rows], dtype)
    _add_ranges(columns, "row", lengths)
    _add_ranges(columns, "segments", [len(row["segments"]) for row in rows])
    segments = np.array([segment for row in rows for segment in row["segments"]], "<i8").reshape(-1, 3)
    for i, name in enumerate(("segment_start", "segment_end", "segment_source")):
        columns[name] = np.ascontiguousarray(segments[:, i])
    return columns


def _add_ranges(columns: Columns, name: str, lengths: Any) -> None:
    counts = np.asarray(lengths, "<i8")
    columns[f"{name}_start"] = np.cumsum(counts) - counts
    columns[f"{name}_length"] = counts


def _add_candidates(
    columns: Columns, counts: list[int], ids: list[str], probability: list[float], selectable: list[bool]
) -> None:
    number: dict[str, int] = {}
    _add_ranges(columns, "candidates", counts)
    columns["candidate_ids"] = np.array([number.setdefault(each, len(number)) for each in ids], "<u4")
    columns["candidate_probability"] = np.array(probability, "<f8")
    columns["candidate_selectable"] = np.array(selectable, "<u1")
    columns["candidate_names"] = np.array(list(number), dtype=str)


def _source_numbers(meta: dict[str, Any]) -> dict[tuple[str, str], int]:
    return {(each["id"], each["digest"]): i for i, each in enumerate(meta["sources"])}


def _flat(parts: list[list[Any]], dtype: str) -> Array:
    return np.array([value for part in parts for value in part], dtype)


def _range(columns: Columns, name: str, i: int) -> slice:
    start = int(columns[f"{name}_start"][i])
    return slice(start, start + int(columns[f"{name}_length"][i]))


def _comparable(columns: Columns) -> Columns:
    if "candidate_ids" not in columns:
        return columns
    rest = {name: values for name, values in columns.items() if name != "candidate_names"}
    return {**rest, "candidate_ids": columns["candidate_names"][columns["candidate_ids"]]}


def _same(a: Array, b: Array) -> bool:
    if a.dtype.kind == "U" or b.dtype.kind == "U":
        return bool(np.array_equal(a, b))
    return a.dtype == b.dtype and a.tobytes() == b.tobytes()
