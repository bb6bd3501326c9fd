"""A batch in the form of `rollbook batch export --format safetensors`, written by hand from docs/reference/keep.md."""

import hashlib
import json
from pathlib import Path

import numpy as np
from safetensors.numpy import save

SYMBOLS = b'{"symbols":"0123456789+="}'
TOKENIZER = f"sha256:{hashlib.sha256(SYMBOLS).hexdigest()}"
BATCH = "sha256:" + "b" * 64


def write_batch(path: Path, rows: list[dict], *, target: str, selection: dict | None = None, advantage: str = "mean-std") -> dict:
    """Rows have ids, mask, logprobs, advantage, reward, group, and source: the digest of the weights that sampled the
    row. Returns the `batch` field of a request."""
    sources = list(dict.fromkeys([target, *(row.get("source", target) for row in rows)]))
    lengths = np.array([len(row["ids"]) for row in rows], dtype=np.int64)
    starts = np.concatenate([[0], np.cumsum(lengths)[:-1]])
    column = lambda name, kind: np.concatenate([np.asarray(row[name], dtype=kind) for row in rows])
    groups = [row.get("group", "g").encode() for row in rows]
    tensors = {
        "row_start": starts,
        "row_length": lengths,
        "ids": column("ids", np.uint32),
        "mask": column("mask", np.uint8),
        "logprobs": column("logprobs", np.float32),
        "advantages": np.concatenate([np.full(len(row["ids"]), row.get("advantage", 0.0), dtype=np.float32) for row in rows]),
        "reward": np.array([row.get("reward", 0.0) for row in rows], dtype=np.float64),
        "weight_bps": np.full(len(rows), 10_000, dtype=np.uint32),
        "group.utf8": np.frombuffer(b"".join(groups), dtype=np.uint8),
        "group.offsets": np.cumsum([0, *map(len, groups)]).astype(np.int64),
        "segment_source": np.array([sources.index(row.get("source", target)) for row in rows], dtype=np.uint32),
        "segments_start": np.arange(len(rows), dtype=np.int64),
        "segments_length": np.ones(len(rows), dtype=np.int64),
    }
    about = {
        "batch": BATCH,
        "target": {"id": "r-1", "digest": target},
        "selection": {"level": "token", "family": "adder", "logprobKind": "sampling", "tokenizer": TOKENIZER, **(selection or {})},
        "options": {"advantage": advantage},
        "sources": [{"id": f"r-{number}", "digest": digest} for number, digest in enumerate(sources)],
    }
    content = save(tensors, {"rollbook": json.dumps(about)})
    path.write_bytes(content)
    return {"path": str(path), "digest": BATCH, "sha256": hashlib.sha256(content).hexdigest()}
