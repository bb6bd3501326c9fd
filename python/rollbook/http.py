"""JSON over HTTP with the standard library. In: URL, body, key. Out: the parsed reply, or an error of this package."""

from __future__ import annotations

import http.client
import json
import urllib.error
import urllib.request
from typing import Any

from .errors import GatewayAwayError, GatewayError, RollbookError


def request_json(
    url: str, body: Any = None, *, key: str | None = None, timeout: float = 600.0
) -> Any:
    """POSTs `body`, or GETs where there is none."""
    headers = {"content-type": "application/json"}
    if key is not None:
        headers["authorization"] = f"Bearer {key}"
    data = None if body is None else json.dumps(body, allow_nan=False).encode()
    request = urllib.request.Request(url, data=data, headers=headers)
    try:
        with urllib.request.urlopen(request, timeout=timeout) as reply:
            content = reply.read()
    except urllib.error.HTTPError as error:
        with error:
            text = error.read().decode("utf-8", "replace")
        raise GatewayError(error.code, text, dict(error.headers.items()), url) from None
    except (OSError, http.client.HTTPException) as error:
        raise _away(url, error, timeout) from error
    try:
        return json.loads(content)
    except ValueError as error:
        raise RollbookError(f"{url} answered what is not JSON. Check that the address is that of a gateway.") from error


def join_url(base: str, path: str) -> str:
    return base.rstrip("/") + "/" + path.lstrip("/")


def _away(url: str, error: BaseException, timeout: float) -> GatewayAwayError:
    cause = getattr(error, "reason", error)
    if isinstance(cause, TimeoutError):
        return GatewayAwayError(f"{url} did not answer within {timeout:g} s. Allow more time, or look at the gateway's log.")
    return GatewayAwayError(
        f"no gateway answers at {url}: {cause}. Start one with `rollbook gateway --config gateway.yaml`, or correct the URL."
    )
