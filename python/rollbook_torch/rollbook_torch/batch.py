"""Reads a token-level batch of `rollbook batch export --format safetensors`. Refuses untrainable batches."""

import hashlib
import json
import struct
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from .refusal import Refusal


@dataclass
class TokenBatch:
    digest: str
    target: dict
    family: str
    advantage: str
    ids: list[np.ndarray]
    mask: list[np.ndarray]
    logprobs: list[np.ndarray]
    advantages: list[np.ndarray]
    rewards: np.ndarray
    weights: np.ndarray
    groups: list[str]
    #: The digest of the weights that sampled all tokens of a row; None if several revisions did.
    sources: list[str | None]
    #: True if a revision other than the target sampled tokens of the row.
    stale: np.ndarray


def read_batch(path: Path, expected: str | None = None, sha256: str | None = None) -> TokenBatch:
    """`expected` is the digest of the batch, `sha256` that of the file. Each is checked if given."""
    try:
        content = path.read_bytes()
    except OSError as error:
        raise Refusal("no-batch", f"{path} cannot be read: {error.strerror}. Write it with `rollbook batch export`.") from error
    if sha256 is not None and hashlib.sha256(content).hexdigest() != sha256.removeprefix("sha256:"):
        raise Refusal("digest-mismatch", f"{path}: the file is not the one that was exported. Export the batch again.")
    tensors, about = _open(content, path)
    if expected is not None and about.get("batch") != expected:
        raise Refusal("other-batch", f"{path} holds the batch {about.get('batch')}, asked for was {expected}.")
    selection = about["selection"]
    if selection["level"] != "token":
        raise Refusal("wrong-level", f"{path} holds steps, not tokens. Cut the batch with --level token.")
    starts, lengths = tensors["row_start"], tensors["row_length"]
    rows = [slice(int(start), int(start + length)) for start, length in zip(starts, lengths)]
    cut = lambda name: [tensors[name][row] for row in rows]
    sources = _sources(tensors, about)
    return TokenBatch(
        digest=about["batch"],
        target=about["target"],
        family=selection["family"],
        advantage=about["options"]["advantage"],
        ids=cut("ids"),
        mask=cut("mask"),
        logprobs=cut("logprobs"),
        advantages=cut("advantages"),
        rewards=tensors["reward"],
        weights=tensors["weight_bps"].astype(np.float64) / 10_000,
        groups=_texts(tensors, "group"),
        sources=sources,
        stale=np.array([each != about["target"]["digest"] for each in sources]),
    )


def require_trainable(batch: TokenBatch, path, *, family: str, tokenizer: str, vocabulary: int, on_policy: bool, about: dict) -> None:
    selection = about["selection"]
    if batch.family != family:
        raise Refusal(
            "policy-family-mismatch", f"{path}: the batch is of the family {batch.family}, the model of {family}. Cut one of {family}."
        )
    own = selection.get("tokenizer")
    if own != tokenizer:
        said = "names no tokenizer" if own is None else f"was recorded with the tokenizer {own}"
        raise Refusal(
            "other-tokenizer", f"{path}: the batch {said}, the model has {tokenizer}. Cut a batch with --tokenizer {tokenizer}."
        )
    if on_policy and selection.get("logprobKind") != "sampling":
        raise Refusal(
            "wrong-logprob-kind",
            f"{path}: the log-probabilities are of kind {selection.get('logprobKind')}, and ratios need `sampling` ones. "
            "Record with logprobKind: sampling, and cut the batch with --logprob-kind sampling.",
        )
    largest = max(int(ids.max()) for ids in batch.ids)
    if largest >= vocabulary:
        raise Refusal("other-tokenizer", f"{path}: token id {largest} is outside of the vocabulary of {vocabulary}.")


def provenance(path: Path) -> dict:
    with path.open("rb") as file:
        (length,) = struct.unpack("<Q", file.read(8))
        return json.loads(json.loads(file.read(length))["__metadata__"]["rollbook"])


def _open(content: bytes, path: Path) -> tuple[dict, dict]:
    from safetensors.numpy import load

    try:
        (length,) = struct.unpack("<Q", content[:8])
        about = json.loads(json.loads(content[8 : 8 + length])["__metadata__"]["rollbook"])
        return load(content), about
    except (KeyError, ValueError, struct.error) as error:
        raise Refusal("no-batch", f"{path} is not a batch in safetensors form: {error}.") from error


def _texts(tensors: dict, name: str) -> list[str]:
    utf8, offsets = tensors[f"{name}.utf8"].tobytes(), tensors[f"{name}.offsets"]
    return [utf8[int(start) : int(end)].decode() for start, end in zip(offsets[:-1], offsets[1:])]


def _sources(tensors: dict, about: dict) -> list[str | None]:
    digests = [each["digest"] for each in about["sources"]]
    sources = tensors["segment_source"]
    found = []
    for start, length in zip(tensors["segments_start"], tensors["segments_length"]):
        of_row = {digests[int(each)] for each in sources[int(start) : int(start + length)]}
        found.append(of_row.pop() if len(of_row) == 1 else None)
    return found
