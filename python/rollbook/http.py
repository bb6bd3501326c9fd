"""JSON over HTTP with the standard library. In: URL, body, key. Out: the parsed reply, or GatewayError."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from typing import Any

from .errors import GatewayError


def request_json(
    url: str, body: Any = None, *, key: str | None = None, timeout: float = 600.0
) -> Any:
    """POSTs `body`, or GETs where there is none."""
    headers = {"content-type": "application/json"}
    if key is not None:
        headers["authorization"] = f"Bearer {key}"
    data = None if body is None else json.dumps(body, allow_nan=False).encode()
    try:
        with urllib.request.urlopen(
            urllib.request.Request(url, data=data, headers=headers), timeout=timeout
        ) as reply:
            return json.load(reply)
    except urllib.error.HTTPError as error:
        with error:
            text = error.read().decode("utf-8", "replace")
        raise GatewayError(error.code, text, dict(error.headers.items()), url) from None


def join_url(base: str, path: str) -> str:
    return base.rstrip("/") + "/" + path.lstrip("/")
