"""JSON over HTTP with the standard library. In: URL, body, key. Out: the parsed reply, or an error of this package."""

from __future__ import annotations

import http.client
import json
import urllib.error
import urllib.request
from typing import Any, Dict, Mapping

from .errors import GatewayAwayError, GatewayError, RollbookError


class Reply(Dict[str, Any]):
    """The body of a reply, a dict, with the facts of the call from the gateway's headers."""

    def __init__(self, body: Mapping[str, Any], *, call: str | None = None, served_model: str | None = None) -> None:
        super().__init__(body)
        self.call = call
        """Identifies the call in `Gateway.feedback(call=…)` and `rollbook route explain`; None if not recorded."""
        self.served_model = served_model
        """The model that the gateway called, if a router or a route chose it."""

    @classmethod
    def of(cls, answer: Any) -> Reply:
        return answer if isinstance(answer, Reply) else cls(answer)


def request_json(
    url: str, body: Any = None, *, key: str | None = None, timeout: float = 600.0
) -> Any:
    """POSTs `body`, or GETs if there is none."""
    sent = {"content-type": "application/json"}
    if key is not None:
        sent["authorization"] = f"Bearer {key}"
    data = None if body is None else json.dumps(body, allow_nan=False).encode()
    request = urllib.request.Request(url, data=data, headers=sent)
    # The messages name the address and the cause. Errors of urllib are not chained, because their traces fill a screen.
    try:
        with urllib.request.urlopen(request, timeout=timeout) as reply:
            content, headers = reply.read(), reply.headers
    except urllib.error.HTTPError as error:
        with error:
            text = error.read().decode("utf-8", "replace")
        raise GatewayError(error.code, text, dict(error.headers.items()), url) from None
    except (OSError, http.client.HTTPException) as error:
        raise _away(url, error, timeout) from None
    try:
        parsed = json.loads(content)
    except ValueError:
        raise RollbookError(f"{url} answered what is not JSON. Check that the address is that of a gateway.") from None
    if not isinstance(parsed, dict):
        return parsed
    return Reply(parsed, call=headers.get("x-rollbook-call"), served_model=headers.get("x-rollbook-model"))


def join_url(base: str, path: str) -> str:
    return base.rstrip("/") + "/" + path.lstrip("/")


def _away(url: str, error: BaseException, timeout: float) -> GatewayAwayError:
    cause = getattr(error, "reason", error)
    if isinstance(cause, TimeoutError):
        return GatewayAwayError(f"{url} did not answer within {timeout:g} s. Allow more time, or look at the gateway's log.")
    return GatewayAwayError(
        f"no gateway answers at {url}: {cause}. Start one with `rollbook gateway --config gateway.yaml`, or correct the URL."
    )
