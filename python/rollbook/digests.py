"""Digests in the form of Rollbook: `sha256:` and the hex of SHA-256 over a tag, a zero byte, and bytes."""

from __future__ import annotations

import hashlib


def digest_of(tag: str, data: bytes | memoryview) -> str:
    hasher = hashlib.sha256(tag.encode() + b"\0")
    hasher.update(data)
    return "sha256:" + hasher.hexdigest()
