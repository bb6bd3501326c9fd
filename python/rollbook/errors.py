"""Errors of this package. An agent raises two of them, FailedBy and CutBy, to set the ending of its rollout."""

from __future__ import annotations

from typing import Literal, Mapping, get_args

Owner = Literal["agent", "task", "provider", "sandbox", "infrastructure"]
Limit = Literal["turns", "tokens", "time", "budget"]


class RollbookError(Exception):
    """Base class of every error of this package."""


class DamagedError(RollbookError):
    """Bytes on disk differ from their digest or their format."""


class FailedBy(RollbookError):
    """The rollout failed, and the agent names the owner of the failure."""

    def __init__(self, owner: Owner, message: str) -> None:
        super().__init__(message)
        self.owner = owner


class CutBy(RollbookError):
    """The rollout reached a limit. It is truncated, not failed."""

    def __init__(self, limit: Limit, message: str) -> None:
        super().__init__(message)
        self.limit = limit


class GatewayAwayError(RollbookError):
    """No gateway answers: it does not run, or not at this address."""


class GatewayError(RollbookError):
    """The gateway, or a model behind it, answered with an error status."""

    def __init__(self, status: int, body: str, headers: Mapping[str, str], url: str) -> None:
        super().__init__(f"{url} answered {status}: {body[:500]}")
        self.status = status
        self.body = body
        self.headers = {name.lower(): value for name, value in headers.items()}


def failed_by(owner: Owner, message: str) -> FailedBy:
    """`raise failed_by("provider", "the model is gone")`"""
    if owner not in get_args(Owner):
        raise ValueError(f"owner is {owner!r}, not one of {', '.join(get_args(Owner))}")
    return FailedBy(owner, message)


def cut_by(limit: Limit, message: str = "") -> CutBy:
    """`raise cut_by("turns")`"""
    if limit not in get_args(Limit):
        raise ValueError(f"limit is {limit!r}, not one of {', '.join(get_args(Limit))}")
    return CutBy(limit, message or f"the limit of {limit} is reached")
