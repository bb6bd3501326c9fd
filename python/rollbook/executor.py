"""Turns a function that runs one rollout into an agent: a program, or a server, that Rollbook can launch.

In: the request of docs/topics/executor.md, on stdin or by POST. Out: the result as one line of JSON. Output of the
function goes to stderr, because stdout carries the result. Seals nothing: the launcher does.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import re
import sys
import traceback
from dataclasses import dataclass, field
from functools import update_wrapper
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Callable, Mapping, TextIO

from .endings import result_of_error
from .http import Reply, join_url, request_json

REQUEST_SCHEMA = "rollbook.executor-request.v1"


@dataclass(frozen=True)
class Rollout:
    """Facts of the rollout that an agent runs, and its calls of models."""

    id: str
    sample: int
    attempt: int
    seed: int
    """The same seed for every attempt."""
    config: Mapping[str, Any]
    """`rollout_config` of the request."""
    rng: random.Random = field(repr=False)
    """Random generator, seeded with `seed`."""

    @property
    def base_url(self) -> str:
        """Base URL with `/v1`: the gateway, else the server of `rollbook launch --base-url`."""
        return self._need("base_url", "Launch with --gateway, or with --base-url")

    @property
    def api_key(self) -> str:
        """Identifies this rollout to the gateway. Without a gateway, OPENAI_API_KEY of the environment."""
        key = self._key()
        if key is None:
            raise LookupError("the rollout has no api_key. Launch with --gateway, or set OPENAI_API_KEY.")
        return key

    @property
    def model(self) -> str:
        """The model of `rollbook launch --model`; default `auto`, so that the gateway's router chooses."""
        value = self.config.get("model_id")
        return value if isinstance(value, str) else "auto"

    def chat(
        self,
        messages: list[dict[str, Any]],
        *,
        model: str | None = None,
        timeout: float = 600.0,
        **parameters: Any,
    ) -> Reply:
        """Calls `/chat/completions`; returns the whole reply, with `call` and `served_model` of the gateway. Raises
        GatewayError, or GatewayAwayError if no gateway answers."""
        body = {"model": model or self.model, "messages": messages, **parameters}
        return Reply.of(self.post("chat/completions", body, timeout=timeout))

    def post(self, path: str, body: Any, *, timeout: float = 600.0) -> Any:
        """POSTs to the gateway as this rollout, and returns the parsed reply. Raises GatewayError."""
        url = join_url(self.base_url, path)
        return request_json(url, body, key=self._key(), timeout=timeout)

    def _key(self) -> str | None:
        """None: a model server without a key."""
        key = self.config.get("api_key")
        return key if isinstance(key, str) else os.environ.get("OPENAI_API_KEY")

    def _need(self, name: str, remedy: str) -> str:
        value = self.config.get(name)
        if isinstance(value, str):
            return value
        raise LookupError(f"the rollout has no {name}. {remedy}.")


AgentFunction = Callable[[Any, Rollout], Any]


class Executor:
    """An agent function with the two ways to run it under Rollbook: `run()` and `serve()`."""

    def __init__(self, function: AgentFunction) -> None:
        self._function = function
        update_wrapper(self, function)

    def __call__(self, payload: Any, rollout: Rollout) -> Any:
        return self._function(payload, rollout)

    def answer(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """The result of one request. An error of the function is also a result."""
        try:
            payload, rollout = _read_request(request)
            return _as_result(self._function(payload, rollout))
        except Exception as error:  # a failed rollout is data for the launcher
            _print_error(error)
            return result_of_error(error)

    def run(self, source: TextIO | None = None, target: TextIO | None = None) -> None:
        """Runs the rollout that stdin requests, and prints its result: `rollbook launch --agent FILE.py`."""
        source, target = source or sys.stdin, target or sys.stdout
        with contextlib.redirect_stdout(sys.stderr):
            line = _to_line(self.answer(json.load(source)))
        print(line, file=target, flush=True)

    def serve(self, port: int = 0, *, host: str = "127.0.0.1") -> None:
        """Serves requests until the process ends, one thread each: `rollbook launch --agent http://HOST:PORT/`."""
        server = self.server(port, host=host)
        print(f"http://{host}:{server.server_address[1]}/", flush=True)
        with server, contextlib.redirect_stdout(sys.stderr):
            server.serve_forever()

    def server(self, port: int = 0, *, host: str = "127.0.0.1") -> ThreadingHTTPServer:
        """The server of `serve()`, bound but not started."""
        answer = self.answer
        local = {"127.0.0.1", "localhost", "::1"}

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                if host in local and self.from_page():
                    self.send_error(403, "web pages are not answered; use the address that was printed")
                    return
                body = self.rfile.read(int(self.headers.get("content-length") or 0))
                try:
                    request = json.loads(body)
                except ValueError:
                    self.send_error(400, "the body is not JSON")
                    return
                data = _to_line(answer(request)).encode()
                self.send_response(200)
                self.send_header("content-type", "application/json")
                self.send_header("content-length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            def from_page(self) -> bool:
                """True if a page in a browser sent the request. On loopback only programs may call an agent."""
                name = re.sub(r":\d*$", "", self.headers.get("host", "")).strip("[]").lower()
                return name not in local or "origin" in self.headers or "sec-fetch-site" in self.headers

            def log_message(self, format: str, *values: Any) -> None:
                """Logs nothing: the launcher already logs rollouts."""

        return ThreadingHTTPServer((host, port), Handler)


def executor(function: AgentFunction) -> Executor:
    """Makes an agent from `function(payload, rollout)`, which returns a reward or `{"reward": …, "final_state": …}`."""
    return Executor(function)


def _read_request(request: Mapping[str, Any]) -> tuple[Any, Rollout]:
    for place in (request, request.get("payload")):
        if isinstance(place, Mapping) and "_rollout" in place:
            raise ValueError("_rollout is called rollout_config now. Rename it, or update the program that sends the request")
    schema = request.get("schema")
    if schema != REQUEST_SCHEMA:
        raise ValueError(f"the request has schema {schema!r}; this package reads {REQUEST_SCHEMA!r}")
    facts, seed = request["rollout"], int(request["rollout"]["seed"])
    config = request.get("rollout_config", {})
    rollout = Rollout(
        facts["id"], facts["sample"], facts["attempt"], seed, config, random.Random(seed)
    )
    return request["payload"], rollout


def _print_error(error: BaseException) -> None:
    """Prints the traceback on stderr, without the frames of this file, which are not the agent's."""
    told = traceback.TracebackException.from_exception(error)
    each: traceback.TracebackException | None = told
    while each is not None:
        each.stack = traceback.StackSummary.from_list([frame for frame in each.stack if frame.filename != __file__])
        each = each.__cause__ or each.__context__
    print("".join(told.format()), end="", file=sys.stderr)


def _as_result(value: Any) -> dict[str, Any]:
    if value is None:
        return {}
    return dict(value) if isinstance(value, Mapping) else {"reward": value}


def _to_line(result: dict[str, Any]) -> str:
    try:
        return json.dumps(result, allow_nan=False, default=_plain)
    except (TypeError, ValueError) as error:
        return json.dumps({"error": {"message": f"the result is not JSON: {error}"}})


def _plain(value: Any) -> Any:
    """Converts numbers and arrays of numpy to plain values, without importing numpy."""
    if hasattr(value, "tolist"):
        return value.tolist()
    raise TypeError(f"{type(value).__name__} has no JSON form")
