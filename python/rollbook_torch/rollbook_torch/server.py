"""A model server with the OpenAI API, for one language model in several revisions.

The server decodes requests that arrive together in one batch. Replies carry exact token ids and the log-probabilities
of the sampling distribution, in the form of vLLM, so the gateway records them (`logprobKind: sampling`). A request
names a revision; the server answers with its weights or refuses. Loopback only.
"""

import asyncio
import json
import sys
import threading
import time
from collections import OrderedDict
from pathlib import Path

from . import http
from .checkpoint import load_model, read_weights, weights_digest, assign_weights
from .decode import Prompt, decode
from .refusal import Refusal
from .tokenizer import load_tokenizer

#: Number of revisions in memory: the newest, and the previous one, which an asynchronous window may still use.
KEPT_REVISIONS = 2


class ModelServer:
    def __init__(self, device: str, max_batch: int, gather_ms: float):
        self.device = device
        self.max_batch = max_batch
        self.gather_s = gather_ms / 1000
        self.tokenizer = None
        self.tokenizer_digest = None
        self.models: OrderedDict[str, object] = OrderedDict()
        self.digests: dict[str, str] = {}
        self.counters = {"requests": 0, "batches": 0, "prompt_tokens": 0, "tokens": 0, "failures": 0, "decode_seconds": 0.0}
        self._waiting: list[tuple[str, list[Prompt], asyncio.Future]] = []
        self._more = threading.Condition()
        #: The revision that decodes the current batch.
        self._decoding: str | None = None
        self._loop = None

    # Revisions

    def load(self, revision: str, folder: Path, expected: str | None) -> str:
        """Makes a revision servable. If KEPT_REVISIONS are loaded, it reuses the memory of the least recent one."""
        weights = read_weights(folder)
        digest = weights_digest(weights)
        if expected is not None and digest != expected:
            raise Refusal(
                "digest-mismatch",
                f"{folder}: the weights hash to {digest}, the revision {revision} says {expected}. Restore the file from the book.",
            )
        if self.digests.get(revision) == digest and self._touch(revision):
            return digest
        tokenizer, tokenizer_digest = load_tokenizer(folder)
        if self.tokenizer_digest not in (None, tokenizer_digest):
            raise Refusal("other-tokenizer", f"{folder} has the tokenizer {tokenizer_digest}, the server began with {self.tokenizer_digest}.")
        self.tokenizer, self.tokenizer_digest = tokenizer, tokenizer_digest
        with self._more:  # no batch can start meanwhile
            self.models.pop(revision, None)
            reused = self.models.popitem(last=False) if len(self.models) >= KEPT_REVISIONS else None
            while reused is not None and self._decoding == reused[0]:
                self._more.wait()
        if reused is None:
            model = load_model(folder, self.device, weights).eval()
        else:
            from safetensors.torch import load

            self.digests.pop(reused[0], None)
            model = reused[1]
            assign_weights(model, load(weights), folder)
        with self._more:
            self.models[revision] = model
            self.digests[revision] = digest
        return digest

    def _touch(self, revision: str) -> bool:
        """True if the revision is loaded; marks it as recently used. A load in another thread may evict it."""
        with self._more:
            if revision not in self.models:
                return False
            self.models.move_to_end(revision)
            return True

    # HTTP

    def handle(self, method: str, path: str, body: bytes):
        path = path.split("?")[0]
        if method == "GET":
            return self._get(path)
        if method != "POST":
            return 405, http.error_body(Refusal("method", f"{method} is not spoken here. Use GET or POST."))
        try:
            request = json.loads(body)
        except ValueError as error:
            raise Refusal("bad-json", f"the body is no JSON: {error}.") from None
        if path == "/v1/chat/completions":
            return self._complete(request, chat=True)
        if path == "/v1/completions":
            return self._complete(request, chat=False)
        if path == "/admin/revisions":
            return self._load_aside(request)
        return self._unknown(path)

    def _get(self, path: str):
        if path == "/healthz":
            return 200, {"ok": len(self.models) > 0, "revisions": list(self.models), "tokenizer": self.tokenizer_digest}
        if path == "/v1/models":
            data = [{"id": each, "object": "model", "owned_by": "rollbook", "digest": self.digests[each]} for each in self.models]
            return 200, {"object": "list", "data": data}
        if path == "/metrics":
            lines = [f"rollbook_torch_{name}_total {value}" for name, value in self.counters.items()]
            return 200, "\n".join([*lines, f"rollbook_torch_waiting {len(self._waiting)}", ""])
        return self._unknown(path)

    def _unknown(self, path: str):
        return 404, http.error_body(Refusal("not-found", f"{path} is not served. See /v1/chat/completions and /v1/completions."))

    async def _load_aside(self, request: dict):
        load = lambda: self.load(str(request["revision"]), Path(request["folder"]), request.get("digest"))
        digest = await asyncio.get_running_loop().run_in_executor(None, load)
        return 200, {"revision": request["revision"], "digest": digest, "tokenizer": self.tokenizer_digest}

    async def _complete(self, request: dict, chat: bool):
        revision = str(request.get("model"))
        if not self._touch(revision):
            raise Refusal(
                "unknown-revision", f"{revision} is not loaded; loaded are {', '.join(self.models) or 'none'}.", status=404
            )
        if request.get("stream"):
            raise Refusal("no-stream", "streams are not spoken here. Ask without `stream`.")
        prompts = self._prompts(request, chat)
        reply = asyncio.get_running_loop().create_future()
        with self._more:
            self._waiting.append((revision, prompts, reply))
            self._more.notify()
        await reply
        self.counters["requests"] += 1
        return 200, self._reply(request, prompts, chat)

    def _prompts(self, request: dict, chat: bool) -> list[Prompt]:
        if chat:
            ids = self.tokenizer.chat(request.get("messages") or [])
        else:
            given = request.get("prompt", "")
            ids = given if isinstance(given, list) else self.tokenizer.prompt(str(given))
        if not ids or not all(isinstance(each, int) and 0 <= each < self.tokenizer.size for each in ids):
            raise Refusal("bad-prompt", "the prompt is empty or has ids outside of the vocabulary.")
        limit = request.get("max_completion_tokens") or request.get("max_tokens") or 64
        seed = request.get("seed")
        seed = int(seed) if seed is not None else int.from_bytes(time.time_ns().to_bytes(8, "little"), "little")
        sampling = dict(
            temperature=float(1.0 if request.get("temperature") is None else request["temperature"]),
            top_p=float(request.get("top_p") or 1.0),
            top_k=max(0, int(request.get("top_k") or 0)),
        )
        count = int(request.get("n") or 1)
        return [Prompt(ids=ids, seed=seed + 1_000_003 * index, max_tokens=int(limit), **sampling) for index in range(count)]

    def _reply(self, request: dict, prompts: list[Prompt], chat: bool) -> dict:
        wants = request.get("logprobs") not in (None, False)
        ids = bool(request.get("return_token_ids"))
        choices = [self._choice(index, each, chat, wants, ids) for index, each in enumerate(prompts)]
        produced = sum(len(each.tokens) for each in prompts)
        self.counters["prompt_tokens"] += len(prompts[0].ids)
        self.counters["tokens"] += produced
        usage = {
            "prompt_tokens": len(prompts[0].ids),
            "completion_tokens": produced,
            "total_tokens": len(prompts[0].ids) + produced,
        }
        return {
            "id": f"rollbook-{self.counters['requests']}",
            "object": "chat.completion" if chat else "text_completion",
            "created": int(time.time()),
            "model": request["model"],
            "choices": choices,
            "usage": usage,
            **({"prompt_token_ids": prompts[0].ids} if ids and chat else {}),
        }

    def _choice(self, index: int, each: Prompt, chat: bool, wants: bool, ids: bool) -> dict:
        text = self.tokenizer.decode(each.tokens)
        choice = {"index": index, "finish_reason": each.finish}
        choice |= {"message": {"role": "assistant", "content": text}} if chat else {"text": text}
        if wants:
            tokens = self.tokenizer.tokens(each.tokens)
            choice["logprobs"] = (
                {"content": [{"token": token, "logprob": value} for token, value in zip(tokens, each.logprobs)]}
                if chat
                else {"tokens": tokens, "token_logprobs": each.logprobs}
            )
        if ids:
            choice["token_ids"] = each.tokens
            if not chat:
                choice["prompt_token_ids"] = each.ids
        return choice

    # Decoding, in its own thread

    def decode_forever(self) -> None:
        while True:
            with self._more:
                while not self._waiting:
                    self._more.wait()
            self._gather()
            revision, batch = self._take()
            began = time.perf_counter()
            error = None
            try:
                rows = [each for _, prompts, _ in batch for each in prompts]
                decode(self.models[revision], rows, self.tokenizer.pad, self.tokenizer.eos)
            except Refusal as refusal:
                error = refusal
            except Exception as cause:  # the clients of this batch get it; the next batch may succeed
                error = Refusal("decode-failed", f"{type(cause).__name__}: {cause}", status=500)
            if error is not None:
                error.fields.setdefault("status", 503)
                self.counters["failures"] += 1
            with self._more:
                self._decoding = None
                self._more.notify_all()
            self.counters["batches"] += 1
            self.counters["decode_seconds"] += time.perf_counter() - began
            self._loop.call_soon_threadsafe(_settle, batch, error)

    def _gather(self) -> None:
        """Waits until no more requests arrive: the requests of one window arrive within milliseconds."""
        known = -1
        while known < len(self._waiting) < self.max_batch:
            known = len(self._waiting)
            time.sleep(self.gather_s)

    def _take(self):
        """Takes the first waiting request, and others of its revision."""
        with self._more:
            revision = self._waiting[0][0]
            batch, rest, rows = [], [], 0
            for each in self._waiting:
                if each[0] == revision and rows < self.max_batch:
                    batch.append(each)
                    rows += len(each[1])
                else:
                    rest.append(each)
            self._waiting = rest
            self._decoding = revision
        return revision, batch

    async def serve(self, port: int) -> None:
        self._loop = asyncio.get_running_loop()
        server, bound = await http.listen(self.handle, port)
        threading.Thread(target=self.decode_forever, daemon=True).start()
        print(json.dumps({"url": f"http://127.0.0.1:{bound}"}), flush=True)
        async with server:
            await asyncio.get_running_loop().run_in_executor(None, _until_closed)


def _settle(batch, error) -> None:
    for _, _, reply in batch:
        if reply.done():
            continue
        if error is None:
            reply.set_result(None)
        else:
            reply.set_exception(error)


def _until_closed() -> None:
    """Waits for the end of standard input. The parent process holds it, so the server ends with its parent."""
    while sys.stdin.buffer.read(4096):
        pass
