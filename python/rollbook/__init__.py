"""Rollbook for Python: agents, a client of the gateway, and readers of books, batches and replay stores.

Agents and the client need only the standard library. The readers need numpy, which is imported on first use.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .errors import (
    CutBy,
    DamagedError,
    FailedBy,
    GatewayAwayError,
    GatewayError,
    RollbookError,
    cut_by,
    failed_by,
)
from .executor import Executor, Rollout, executor
from .gateway import Gateway, OpenRollout
from .http import Reply

if TYPE_CHECKING:
    from .batch import Batch, load_batch, read_batch
    from .book import Blob, Book
    from .replay import ReplayStore

__version__ = "0.1.0"

__all__ = [
    "Batch",
    "Blob",
    "Book",
    "CutBy",
    "DamagedError",
    "Executor",
    "FailedBy",
    "Gateway",
    "GatewayAwayError",
    "GatewayError",
    "OpenRollout",
    "ReplayStore",
    "Reply",
    "RollbookError",
    "Rollout",
    "cut_by",
    "executor",
    "failed_by",
    "load_batch",
    "read_batch",
]

_LAZY = {
    "Batch": "batch",
    "Blob": "book",
    "Book": "book",
    "ReplayStore": "replay",
    "load_batch": "batch",
    "read_batch": "batch",
}


def __getattr__(name: str) -> Any:
    if name not in _LAZY:
        raise AttributeError(f"module 'rollbook' has no attribute {name!r}")
    from importlib import import_module

    try:
        module = import_module(f".{_LAZY[name]}", __name__)
    except ModuleNotFoundError as error:
        if error.name != "numpy":
            raise
        raise ImportError(f"rollbook.{name} needs numpy. Run: pip install numpy") from None
    return getattr(module, name)
