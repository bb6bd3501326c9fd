"""Agents without a gateway: requests in, results out."""

import io
import json
import os
import re
import socket
import threading
import traceback
import unittest
import urllib.request
from contextlib import redirect_stderr
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from unittest.mock import patch

import rollbook
from rollbook import Rollout, cut_by, executor, failed_by
from rollbook.errors import GatewayAwayError, GatewayError


def request(payload, **config):
    return {
        "schema": "rollbook.executor-request.v1",
        "payload": payload,
        "rollout_config": config,
        "rollout": {"id": "r-1", "sample": 2, "attempt": 1, "seed": str(2**63)},
    }


def answer(function, payload=None, **config):
    with redirect_stderr(io.StringIO()):
        return executor(function).answer(request(payload, **config))


def raising(error):
    def function(payload, rollout):
        raise error

    return function


class Executors(unittest.TestCase):
    def test_a_number_is_a_reward_and_an_object_is_the_result(self):
        self.assertEqual(answer(lambda payload, rollout: payload * 2, 3), {"reward": 6})
        self.assertEqual(answer(lambda *_: {"final_state": [1]}), {"final_state": [1]})
        self.assertEqual(answer(lambda *_: None), {})

    def test_the_rollout_carries_seed_sample_and_configuration(self):
        seen = []
        answer(lambda payload, rollout: seen.append(rollout), model_id="tiny", base_url="http://x/v1", api_key="rb-1")
        rollout = seen[0]
        self.assertEqual((rollout.id, rollout.sample, rollout.attempt, rollout.seed), ("r-1", 2, 1, 2**63))
        self.assertEqual((rollout.model, rollout.base_url, rollout.api_key), ("tiny", "http://x/v1", "rb-1"))
        self.assertEqual(rollout.rng.random(), __import__("random").Random(2**63).random())

    def test_a_rollout_without_a_gateway_says_what_is_missing(self):
        said = answer(lambda payload, rollout: rollout.base_url)["error"]["message"]
        self.assertIn("Launch with --gateway, or with --base-url", said)
        with patch.dict(os.environ, clear=True):
            said = answer(lambda payload, rollout: rollout.api_key, base_url="http://x/v1")["error"]["message"]
        self.assertIn("Launch with --gateway, or set OPENAI_API_KEY", said)

    def test_without_a_gateway_the_key_is_that_of_the_environment(self):
        with patch.dict(os.environ, {"OPENAI_API_KEY": "sk-own"}):
            keys = [
                answer(lambda payload, rollout: {"final_state": rollout.api_key}, base_url="http://x/v1", **config)
                for config in ({}, {"api_key": "rb-1"})
            ]
        self.assertEqual([key["final_state"] for key in keys], ["sk-own", "rb-1"])

    def test_the_model_is_that_of_the_launch_and_else_the_router_chooses(self):
        self.assertEqual(answer(lambda payload, rollout: {"final_state": rollout.model})["final_state"], "auto")
        self.assertEqual(
            answer(lambda payload, rollout: {"final_state": rollout.model}, model_id="tiny")["final_state"], "tiny"
        )

    def test_a_gateway_that_is_away_is_told_with_its_address_and_is_nobodys_agent_failure(self):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            url = f"http://127.0.0.1:{free.getsockname()[1]}/v1"
        result = answer(lambda payload, rollout: rollout.chat([]), base_url=url, api_key="rb-1")
        self.assertEqual(result["error"]["owner"], "infrastructure")
        for part in (f"no gateway answers at {url}/chat/completions", "rollbook gateway --config"):
            self.assertIn(part, result["error"]["message"])
        with self.assertRaises(rollbook.GatewayAwayError) as away:
            rollbook.Gateway(url).rollout()
        self.assertIn("Start one with", str(away.exception))
        self.assertNotIn("urllib", "".join(traceback.format_exception(away.exception)))

    def test_a_gateway_that_cannot_record_is_a_failure_of_the_infrastructure(self):
        refused = GatewayError(503, "full", {"X-Rollbook-Refusal": "cannot-record"}, "u")
        self.assertEqual(answer(raising(refused))["error"]["owner"], "infrastructure")

    def test_errors_name_their_owner_or_limit_also_as_a_cause(self):
        self.assertEqual(answer(raising(failed_by("task", "broken")))["error"], {"owner": "task", "message": "broken"})
        self.assertEqual(answer(raising(cut_by("turns"))), {"ending": {"kind": "truncated", "limit": "turns"}})
        self.assertEqual(answer(raising(ValueError("no"))), {"error": {"message": "ValueError: no"}})

        def wrapped(payload, rollout):
            try:
                raise failed_by("provider", "gone")
            except Exception as error:
                raise RuntimeError("outer") from error

        self.assertEqual(answer(wrapped)["error"], {"owner": "provider", "message": "outer"})

    def test_a_reply_through_the_gateway_decides_the_ending(self):
        ours = {"X-Rollbook-Call": "r-1.0"}
        cases = [
            (GatewayError(503, "busy", ours, "u"), "provider"),
            (GatewayError(429, "slow down", ours, "u"), "provider"),
            (GatewayError(503, "elsewhere", {}, "u"), None),
            (GatewayError(400, "bad", ours, "u"), None),
        ]
        for error, owner in cases:
            self.assertEqual(answer(raising(error))["error"].get("owner"), owner)
        for status, code, limit in [
            (429, "turn-cap", "turns"),
            (429, "size-cap", "budget"),
            (402, "budget-cap", "budget"),
            (429, "budget-reserved", "budget"),
        ]:
            said = GatewayError(status, f'{{"error":{{"code":"{code}"}}}}', {}, "u")
            marked = GatewayError(status, "no room", {"X-Rollbook-Refusal": code}, "u")
            for error in (said, marked):
                self.assertEqual(answer(raising(error))["ending"]["limit"], limit)
        other = GatewayError(429, "a turn-cap of its own", {"X-Rollbook-Refusal": "seal-backlog"}, "u")
        self.assertIn("error", answer(raising(other)))

    def test_a_rollout_of_the_client_ends_as_one_of_a_launch_does(self):
        ours = {"X-Rollbook-Call": "r-1.0"}
        cases = [
            (GatewayError(502, "down", ours, "u"), ("failed", "provider")),
            (GatewayError(400, "bad", ours, "u"), ("failed", "agent")),
            (GatewayAwayError("no gateway"), ("failed", "infrastructure")),
            (GatewayError(429, "turn-cap", {}, "u"), ("truncated", None)),
            (failed_by("task", "broken"), ("failed", "task")),
            (KeyboardInterrupt(), ("cancelled", None)),
        ]
        for error, expected in cases:
            closed = []
            gateway = rollbook.Gateway("http://127.0.0.1:9")
            gateway.close = lambda id, *, ending, **_: closed.append(ending) or {}
            with self.assertRaises(type(error)):
                with rollbook.OpenRollout(gateway, "r-1", "key"):
                    raise error
            self.assertEqual((closed[0]["kind"], closed[0].get("owner")), expected)

    def test_a_reply_names_its_call_and_the_model_that_served_it(self):
        class Handler(BaseHTTPRequestHandler):
            def do_POST(self):
                asked.append(json.loads(self.rfile.read(int(self.headers["content-length"]))))
                data = b'{"added": true}' if self.path.endswith("feedback") else b'{"choices": []}'
                self.send_response(200)
                self.send_header("x-rollbook-call", "r-1.0")
                self.send_header("x-rollbook-model", "small")
                self.send_header("content-length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            def log_message(self, *_):
                pass

        asked = []
        with HTTPServer(("127.0.0.1", 0), Handler) as server:
            threading.Thread(target=server.serve_forever, daemon=True).start()
            gateway = rollbook.Gateway(f"http://127.0.0.1:{server.server_address[1]}")
            reply = rollbook.OpenRollout(gateway, "r-1", "key").chat([])
            self.assertEqual((reply, reply.call, reply.served_model), ({"choices": []}, "r-1.0", "small"))
            self.assertTrue(gateway.feedback("liked", True, key="k", call=reply.call))
            server.shutdown()
        self.assertEqual(asked[-1], {"name": "liked", "value": 1.0, "idempotencyKey": "k", "call": "r-1.0"})

    def test_the_former_name_of_rollout_config_is_refused(self):
        for bad in ({"_rollout": {}}, request({"_rollout": {}})):
            with redirect_stderr(io.StringIO()):
                said = executor(lambda *_: 1).answer(bad)
            self.assertIn("_rollout is called rollout_config now", said["error"]["message"])

    def test_an_unknown_owner_limit_or_schema_is_refused(self):
        self.assertRaises(ValueError, failed_by, "me", "")
        self.assertRaises(ValueError, cut_by, "mood")
        with redirect_stderr(io.StringIO()):
            said = executor(lambda *_: 1).answer({**request(1), "schema": "v2"})
        self.assertIn("v2", said["error"]["message"])

    def test_a_traceback_shows_the_agent_and_no_frame_of_the_executor(self):
        def careless(payload, rollout):
            try:
                return rollout.base_url
            except LookupError as error:
                raise ValueError("no gateway") from error

        log = io.StringIO()
        with redirect_stderr(log):
            executor(careless).answer(request(1))
        self.assertIn("in careless", log.getvalue())
        self.assertIn("ValueError: no gateway", log.getvalue())
        self.assertNotIn("executor.py\", line", log.getvalue().replace("test_executor.py", "agent.py"))

    def test_prints_of_the_agent_do_not_reach_the_result(self):
        @executor
        def noisy(payload, rollout):
            print("thinking")
            return 1

        target, log = io.StringIO(), io.StringIO()
        with redirect_stderr(log):
            noisy.run(io.StringIO(json.dumps(request(1))), target)
        self.assertEqual(target.getvalue(), '{"reward": 1}\n')
        self.assertEqual(log.getvalue(), "thinking\n")

    def test_numbers_of_numpy_are_plain_and_nan_is_an_error(self):
        import numpy as np

        target = io.StringIO()
        executor(lambda *_: {"reward": np.float32(0.5), "final_state": np.arange(2)}).run(
            io.StringIO(json.dumps(request(1))), target
        )
        self.assertEqual(json.loads(target.getvalue()), {"reward": 0.5, "final_state": [0, 1]})
        target = io.StringIO()
        executor(lambda *_: float("nan")).run(io.StringIO(json.dumps(request(1))), target)
        self.assertIn("not JSON", json.loads(target.getvalue())["error"]["message"])

    def test_a_server_on_loopback_answers_no_web_page(self):
        runs = []
        server = executor(lambda payload, rollout: runs.append(payload)).server()
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            for name, value in (("Host", "evil.example"), ("Origin", "null"), ("Sec-Fetch-Site", "cross-site")):
                url = f"http://127.0.0.1:{server.server_address[1]}/"
                page = urllib.request.Request(url, json.dumps(request(1)).encode(), {name: value})
                with self.assertRaises(urllib.error.HTTPError) as refused:
                    urllib.request.urlopen(page)
                self.assertEqual(refused.exception.code, 403)
                refused.exception.close()
        finally:
            server.shutdown()
            thread.join()
            server.server_close()
        self.assertEqual(runs, [])

    def test_a_server_answers_requests_and_refuses_what_is_no_json(self):
        server = executor(lambda payload, rollout: payload + rollout.sample).server()
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            url = f"http://127.0.0.1:{server.server_address[1]}/"
            with urllib.request.urlopen(url, data=json.dumps(request(40)).encode()) as reply:
                self.assertEqual(json.load(reply), {"reward": 42})
            with self.assertRaises(urllib.error.HTTPError) as refused:
                urllib.request.urlopen(url, data=b"{")
            self.assertEqual(refused.exception.code, 400)
            refused.exception.close()
        finally:
            server.shutdown()
            thread.join()
            server.server_close()

    def test_a_decorated_agent_is_still_the_function(self):
        @executor
        def solve(payload, rollout):
            """Solves."""
            return payload

        self.assertEqual((solve.__name__, solve.__doc__), ("solve", "Solves."))
        self.assertEqual(solve(7, Rollout("r", 0, 1, 0, {}, None)), 7)

    def test_the_examples_of_the_readme_compile_and_import_names_that_exist(self):
        text = (Path(__file__).parents[1] / "README.md").read_text("utf-8")
        blocks = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
        self.assertGreater(len(blocks), 4)
        for block in blocks:
            compile(block, "README.md", "exec")
            for names in re.findall(r"^from rollbook import (.*)$", block, re.MULTILINE):
                for name in names.split(", "):
                    self.assertTrue(hasattr(rollbook, name), name)

    def test_an_unknown_name_of_the_package_is_an_attribute_error(self):
        self.assertRaises(AttributeError, lambda: rollbook.nothing)


if __name__ == "__main__":
    unittest.main()
