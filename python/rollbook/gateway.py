"""A client of the recording gateway: opens and closes rollouts, calls models in them, sends feedback.

In: the gateway's URL. Out: its replies. Needs only the standard library.
"""

from __future__ import annotations

from types import TracebackType
from typing import Any, Mapping
from urllib.parse import quote

from .endings import ending_of
from .http import Reply, join_url, request_json


class Gateway:
    """`Gateway("http://127.0.0.1:8790")`; `token` is needed if the gateway has `tokensEnv`."""

    def __init__(self, url: str, *, token: str | None = None, timeout: float = 600.0) -> None:
        self.url = url.rstrip("/").removesuffix("/v1")
        self._token = token
        self._timeout = timeout

    def rollout(
        self,
        id: str | None = None,
        *,
        task: str | None = None,
        group: str | None = None,
        environment: str | None = None,
        seed: int | None = None,
        max_turns: int | None = None,
        budget_usd: float | None = None,
        data_source: str | None = None,
    ) -> OpenRollout:
        """Opens a rollout. A `with` block closes it at its end."""
        opening: dict[str, Any] = {
            "id": id,
            "task": None if task is None else {"id": task},
            "group": group,
            "environment": environment,
            "seed": None if seed is None else str(seed),
            "maxTurns": max_turns,
            "budgetUsd": budget_usd,
            "dataSource": data_source,
        }
        opened = self.post("rollouts", _given(opening))
        return OpenRollout(self, opened["id"], opened["apiKey"])

    def close(
        self,
        rollout: str,
        *,
        scores: Mapping[str, float] | list[dict[str, Any]] | None = None,
        ending: Mapping[str, Any] | None = None,
        final_state: Any = None,
    ) -> dict[str, Any]:
        """Seals a rollout; the reply names the artifact. `scores`: values by name, or objects with weights."""
        if isinstance(scores, Mapping):
            scores = [{"name": name, "value": value} for name, value in scores.items()]
        closing = _given({"scores": scores, "ending": ending, "finalState": final_state})
        answer: dict[str, Any] = self.post(f"rollouts/{quote(rollout, safe='')}/close", closing)
        return answer

    def feedback(
        self,
        name: str,
        value: float,
        *,
        key: str,
        rollout: str | None = None,
        call: str | None = None,
        source: str | None = None,
    ) -> bool:
        """Adds an outcome to a rollout or to one call (`call` of the reply of `chat`), before or after the sealing.
        True counts as 1 and False as 0. `key` makes it idempotent: the same key counts once. Returns True if new."""
        body = {"name": name, "value": float(value), "idempotencyKey": key}
        named = {"rollout": rollout, "call": call, "source": source}
        return bool(self.post("feedback", {**body, **_given(named)})["added"])

    def route(self, prompt: str, *, context: Mapping[str, Any] | None = None, model: str = "auto") -> dict[str, Any]:
        """Asks the router for a model and records the choice, without a call."""
        decided: dict[str, Any] = self.post(
            "route", _given({"model": model, "prompt": prompt, "context": context})
        )
        return decided

    def open_rollouts(self) -> list[dict[str, Any]]:
        """The open rollouts: id, task, calls, times."""
        return list(self.get("rollouts")["rollouts"])

    def models(self) -> list[str]:
        return [each["id"] for each in self.get("models")["data"]]

    def get(self, path: str) -> Any:
        return request_json(self._at(path), key=self._token, timeout=self._timeout)

    def post(self, path: str, body: Any, *, key: str | None = None) -> Any:
        return request_json(self._at(path), body, key=key or self._token, timeout=self._timeout)

    def _at(self, path: str) -> str:
        return join_url(self.url, f"v1/{path.lstrip('/')}")


class OpenRollout:
    """An open rollout of the gateway."""

    def __init__(self, gateway: Gateway, id: str, api_key: str) -> None:
        self.gateway = gateway
        self.id = id
        self.api_key = api_key
        self.sealed: dict[str, Any] | None = None
        """The gateway's reply to the close."""
        self._scores: dict[str, float] = {}
        self._final_state: Any = None

    @property
    def base_url(self) -> str:
        """For SDKs: `OpenAI(base_url=rollout.base_url, api_key=rollout.api_key)`."""
        return join_url(self.gateway.url, "v1")

    def chat(self, messages: list[dict[str, Any]], *, model: str = "auto", **parameters: Any) -> Reply:
        """Makes a recorded call of `/chat/completions`; returns the whole reply, with `call` and `served_model` of the
        gateway. With `auto` the gateway's router chooses."""
        body = {"model": model, "messages": messages, **parameters}
        return Reply.of(self.gateway.post("chat/completions", body, key=self.api_key))

    def score(self, name: str, value: float) -> None:
        """Adds a score, which `close` sends. The sum of a rollout's scores is its reward."""
        self._scores[name] = value

    def finish(self, final_state: Any) -> None:
        """Sets the final state of the rollout, any JSON, which `close` sends."""
        self._final_state = final_state

    def close(self, ending: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """Seals the rollout. Without an ending the gateway derives one from the last reply."""
        if self.sealed is None:
            self.sealed = self.gateway.close(
                self.id, scores=self._scores or None, ending=ending, final_state=self._final_state
            )
        return self.sealed

    def __enter__(self) -> OpenRollout:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close(None if error is None else ending_of(error))


def _given(fields: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if value is not None}
