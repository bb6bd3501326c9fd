"""A small HTTP/1.1 server on asyncio: keep-alive, Content-Length bodies, JSON. Loopback only; no TLS, no chunked requests."""

import asyncio
import json

from .refusal import Refusal

REASONS = {200: "OK", 400: "Bad Request", 404: "Not Found", 405: "Method Not Allowed", 409: "Conflict"}
MAX_BODY_BYTES = 64 << 20


class HttpConnection(asyncio.Protocol):
    """One connection. `handle(method, path, body)` returns (status, body) or a future of it; replies
    keep the order of requests."""

    def __init__(self, handle):
        self._handle = handle
        self._buffer = b""
        self._transport = None
        self._busy = False

    def connection_made(self, transport):
        self._transport = transport

    def data_received(self, data):
        self._buffer = self._buffer + data if self._buffer else data
        if not self._busy:
            self._next()

    def _next(self):
        while not self._busy:
            end = self._buffer.find(b"\r\n\r\n")
            if end < 0:
                return
            head = self._buffer[:end].split(b"\r\n")
            length = 0
            for line in head[1:]:
                name, _, value = line.partition(b":")
                if name.lower() == b"content-length":
                    length = int(value)
            if length > MAX_BODY_BYTES:
                self._transport.close()
                return
            if len(self._buffer) < end + 4 + length:
                return
            body = self._buffer[end + 4 : end + 4 + length]
            self._buffer = self._buffer[end + 4 + length :]
            method, path, _ = head[0].decode("latin-1").split(" ", 2)
            self._answer(method, path, body)

    def _answer(self, method, path, body):
        try:
            result = self._handle(method, path, body)
        except Refusal as refusal:
            result = (refusal.fields.get("status", 400), error_body(refusal))
        if asyncio.isfuture(result) or asyncio.iscoroutine(result):
            self._busy = True
            asyncio.ensure_future(result).add_done_callback(self._done)
        else:
            self._write(*result)

    def _done(self, task):
        error = task.exception()
        if isinstance(error, Refusal):
            self._write(error.fields.get("status", 400), error_body(error))
        elif error is not None:
            self._write(500, error_body(Refusal("internal", f"{type(error).__name__}: {error}")))
        else:
            self._write(*task.result())
        self._busy = False
        self._next()

    def _write(self, status, content):
        if self._transport.is_closing():
            return
        kind = "text/plain; version=0.0.4" if isinstance(content, str) else "application/json"
        data = content.encode() if isinstance(content, str) else json.dumps(content, separators=(",", ":")).encode()
        head = (
            f"HTTP/1.1 {status} {REASONS.get(status, 'Error')}\r\ncontent-type: {kind}\r\n"
            f"content-length: {len(data)}\r\n\r\n"
        )
        self._transport.write(head.encode() + data)


def error_body(refusal: Refusal) -> dict:
    return {"error": {"message": refusal.message, "type": "invalid_request_error", "code": refusal.code}}


async def listen(handle, port: int):
    """Returns the server and the port that it listens on."""
    server = await asyncio.get_running_loop().create_server(
        lambda: HttpConnection(handle), "127.0.0.1", port, backlog=4096
    )
    return server, server.sockets[0].getsockname()[1]
