"""Stands in for slime's train.py: reads the flags and files as slime does, asks the hook for rollouts as its rollout manager
does, checks what slime demands of samples, and writes what it found to $STAND_IN_OUT. It serves tokens as SGLang's router
does: answer "7" to the first half of the calls and "8" to the rest, every token with its id and log-probability."""

import argparse
import copy
import importlib
import json
import os
import threading
from dataclasses import dataclass, field
from enum import Enum
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class Status(Enum):
    PENDING = "pending"
    COMPLETED = "completed"
    TRUNCATED = "truncated"
    ABORTED = "aborted"
    FAILED = "failed"


@dataclass
class Sample:
    Status = Status
    group_index: int | None = None
    index: int | None = None
    rollout_id: int | None = None
    prompt: object = ""
    tokens: list = field(default_factory=list)
    response: str = ""
    response_length: int = 0
    label: str | None = None
    reward: float | None = None
    loss_mask: list | None = None
    rollout_log_probs: list | None = None
    remove_sample: bool = False
    status: Status = Status.PENDING
    metadata: dict = field(default_factory=dict)

    def get_reward_value(self, args):
        return self.reward


class DataSource:
    def __init__(self, args):
        with open(args.prompt_data, encoding="utf-8") as rows:
            self.rows = [json.loads(row) for row in rows]
        self.args, self.group, self.index = args, 0, 0

    def get_samples(self, count):
        groups = []
        for _ in range(count):
            row = self.rows[self.group % len(self.rows)]
            group = []
            for _ in range(self.args.n_samples_per_prompt):
                sample = Sample(prompt=row[self.args.input_key], label=row.get(self.args.label_key))
                sample.metadata = copy.deepcopy(row.get(self.args.metadata_key) or {})
                sample.group_index, sample.index = self.group, self.index
                self.index += 1
                group.append(sample)
            self.group += 1
            groups.append(group)
        return groups


class Router(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    calls = 0

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        assert body["return_token_ids"] and body["logprobs"], "tokens are not asked for"
        Router.calls += 1
        text = "7" if Router.calls % 2 == 1 else "8"
        choice = {
            "index": 0,
            "message": {"role": "assistant", "content": text},
            "finish_reason": "stop",
            "prompt_token_ids": [1, 2, 3],
            "token_ids": [int(text) + 10, 2],
            "logprobs": {"content": [{"token": text, "logprob": -0.5}, {"token": "</s>", "logprob": -0.25}]},
        }
        usage = {"prompt_tokens": 3, "completion_tokens": 2, "total_tokens": 5}
        reply = json.dumps({"id": "c", "object": "chat.completion", "created": 0, "model": body["model"]} | {"choices": [choice], "usage": usage})
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(reply)))
        self.end_headers()
        self.wfile.write(reply.encode())

    def log_message(self, *_):
        pass


def main():
    parser = argparse.ArgumentParser(allow_abbrev=False)
    for name in ("--hf-checkpoint", "--prompt-data", "--input-key", "--label-key", "--metadata-key"):
        parser.add_argument(name, required=True)
    for name in ("--num-rollout", "--rollout-batch-size", "--n-samples-per-prompt", "--rollout-max-response-len"):
        parser.add_argument(name, type=int, required=True)
    for name in ("--rollout-function-path", "--custom-reward-post-process-path", "--custom-config-path"):
        parser.add_argument(name, required=True)
    parser.add_argument("--rollout-temperature", type=float, required=True)
    args, others = parser.parse_known_args()
    with open(args.custom_config_path, encoding="utf-8") as settings:
        for name, value in json.load(settings).items():
            setattr(args, name, value)

    server = ThreadingHTTPServer(("127.0.0.1", 0), Router)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    args.sglang_router_ip, args.sglang_router_port = server.server_address

    generate, post_process = map(load, (args.rollout_function_path, args.custom_reward_post_process_path))
    source, steps = DataSource(args), []
    for rollout_id in range(args.num_rollout):
        output = generate(args, rollout_id, source, evaluation=False)
        samples = flatten(output.samples)
        raw, rewards = post_process(args, samples)
        assert len(raw) == len(rewards) == len(samples)
        for sample in samples:
            assert sample.rollout_id is not None
            assert len(sample.loss_mask) == len(sample.rollout_log_probs) == sample.response_length > 0
            assert len(sample.tokens) >= sample.response_length
        steps.append(
            {
                "metrics": output.metrics,
                "samples": [{**vars(each), "status": each.status.value} for each in samples],
                "rewards": rewards,
            }
        )
    with open(os.environ["STAND_IN_OUT"], "w", encoding="utf-8") as out:
        json.dump({"others": others, "pythonpath": os.environ["PYTHONPATH"], "steps": steps}, out)


def load(path):
    module, name = path.rsplit(".", 1)
    return getattr(importlib.import_module(module), name)


def flatten(node):
    return [leaf for each in node for leaf in flatten(each)] if isinstance(node, list) else [node]


main()
