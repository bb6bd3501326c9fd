"""Derives the ending of a rollout from its last error. In: an exception. Out: an executor result, or an ending."""

from __future__ import annotations

from typing import Any

from .errors import CutBy, FailedBy, GatewayAwayError


def ending_of(error: BaseException) -> dict[str, Any]:
    """The ending that `rollbook launch` would give a rollout that ended with this error."""
    if isinstance(error, KeyboardInterrupt):
        return {"kind": "cancelled"}
    result = result_of_error(error)
    if "ending" in result:
        ending: dict[str, Any] = result["ending"]
        return ending
    named = result["error"]
    return {"kind": "failed", "owner": named.get("owner", "agent"), "message": named["message"][:4096]}


def result_of_error(error: BaseException) -> dict[str, Any]:
    """The first error in the chain of causes that names an owner or a limit decides. The default owner is the agent."""
    each: BaseException | None = error
    for _ in range(32):  # a chain of causes may be a cycle
        if each is None:
            break
        if isinstance(each, FailedBy):
            return {"error": {"owner": each.owner, "message": str(error)}}
        if isinstance(each, CutBy):
            return _truncated(each.limit)
        if isinstance(each, GatewayAwayError):
            return {"error": {"owner": "infrastructure", "message": str(error)}}
        named = _result_of_reply(each)
        if named is not None:
            return named
        each = each.__cause__ or each.__context__
    return {"error": {"message": f"{type(error).__name__}: {error}"}}


def _result_of_reply(error: BaseException) -> dict[str, Any] | None:
    """The result for a gateway reply in GatewayError, or in an error of the `openai` and `anthropic` packages."""
    status = getattr(error, "status", None) or getattr(error, "status_code", None)
    if not isinstance(status, int):
        return None
    response = getattr(error, "response", error)
    headers = getattr(response, "headers", None) or {}
    refusal = _header(headers, "x-rollbook-refusal")
    if status == 503 and refusal in _AWAY:
        return {"error": {"owner": "infrastructure", "message": str(error)}}
    said = f"{getattr(error, 'body', '')} {error}"
    for code, (cap_status, limit) in _CAPS.items():
        if status == cap_status and (code in said if refusal is None else code == refusal):
            return _truncated(limit)
    is_providers = status in (408, 429) or status >= 500
    if is_providers and _header(headers, "x-rollbook-call") is not None:
        return {"error": {"owner": "provider", "message": str(error)}}
    return None


_CAPS: dict[str, tuple[int, str]] = {
    "turn-cap": (429, "turns"),
    "size-cap": (429, "budget"),
    "budget-cap": (402, "budget"),
    "budget-reserved": (429, "budget"),
}
"""Refusals of a call that a limit of the rollout does not allow: the status, and the limit."""

_AWAY = ("cannot-record", "owner-away", "router-not-ready")
"""Refusals of a gateway that cannot record, cannot reach the rollout's owner, or has not read the rollout's router."""


def _header(headers: Any, name: str) -> str | None:
    value = headers.get(name)
    return None if value is None else str(value)


def _truncated(limit: str) -> dict[str, Any]:
    return {"ending": {"kind": "truncated", "limit": limit}}
