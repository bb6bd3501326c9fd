"""Rollouts for slime; Rollbook runs, records and seals them.

slime loads this file by `--rollout-function-path rollbook_slime.generate_rollout` and
`--custom-reward-post-process-path rollbook_slime.normalize_rewards`. In: slime's samples; the row's metadata is the
agent's payload. Out: one sample or more for each rollout, with the recorded tokens, masks and log-probabilities. A
failed rollout is marked (`status`, `remove_sample`) and counts in no baseline. The settings are the fields of `args`
that begin with `rollbook_`; `rollbook.json` in the run's folder sets them.
"""

from __future__ import annotations

import atexit
import copy
import json
import math
import os
import subprocess
from collections import defaultdict
from pathlib import Path

_gateway: subprocess.Popen | None = None


def generate_rollout(args, rollout_id, data_source, evaluation=False):
    """slime's rollout function: one step of training, or an evaluation."""
    if evaluation:
        return _evaluate(args, rollout_id)
    groups = data_source.get_samples(args.rollout_batch_size)
    step = f"{args.rollbook_exp_id}-{rollout_id}"
    sampling = {
        "temperature": args.rollout_temperature,
        "top_p": getattr(args, "rollout_top_p", 1.0),
        "max_tokens": args.rollout_max_response_len,
    }
    rollouts, launched = _run(args, step, [group[0] for group in groups], len(groups[0]), sampling)
    filled = [
        [_fill(group[i], rollouts.get((row, i), []), launched.get((row, i)), step) for i in range(len(group))]
        for row, group in enumerate(groups)
    ]
    kept = [sample for group in filled for samples in group for sample in samples if not sample.remove_sample]
    total = sum(len(group) for group in filled)
    removed = sum(1 for group in filled for samples in group if all(each.remove_sample for each in samples))
    if not kept:
        raise RuntimeError(
            f"all {total} rollouts of step {rollout_id} failed, so there is nothing to learn from. "
            f"`rollbook artifact ls --book {args.rollbook_book} --exp {step}` shows why. "
            "Correct the cause and start again: what is sealed stays."
        )
    metrics = {"rollout/rollbook_removed": removed, "rollout/rollbook_removed_share": removed / total}
    return _train_output([samples for group in filled for samples in group], metrics)


def normalize_rewards(args, samples):
    """slime's reward post-processing: GRPO over the rollouts of a group that have a reward.

    A rollout counts once, for any number of samples. A removed sample gets the baseline, so its advantage is 0."""
    groups = defaultdict(dict)
    for sample in samples:
        if not sample.remove_sample:
            groups[sample.group_index][sample.rollout_id] = sample.get_reward_value(args)
    scale = {group: _scale(list(rewards.values()), args) for group, rewards in groups.items()}
    raw, normal = [], []
    for sample in samples:
        mean, deviation = scale.get(sample.group_index, (0.0, 1.0))
        reward = mean if sample.remove_sample else sample.get_reward_value(args)
        raw.append(reward)
        normal.append((reward - mean) / deviation)
    return raw, normal


def _scale(rewards, args):
    mean = sum(rewards) / len(rewards)
    if not getattr(args, "grpo_std_normalization", True) or len(rewards) < 2:
        return mean, 1.0
    variance = sum((each - mean) ** 2 for each in rewards) / (len(rewards) - 1)
    return mean, math.sqrt(variance) + 1e-6


def _evaluate(args, rollout_id):
    data = {}
    for dataset in getattr(args, "eval_datasets", None) or []:
        rows = [_row_sample(row) for row in _read_lines(dataset.path)]
        count = dataset.n_samples_per_eval_prompt or 1
        step = f"{args.rollbook_exp_id}-eval-{dataset.name}-{rollout_id}"
        sampling = {
            "temperature": dataset.temperature,
            "top_p": dataset.top_p,
            "max_tokens": dataset.max_response_len,
        }
        rollouts, _ = _run(args, step, rows, count, sampling)
        found = [each for row in range(len(rows)) for i in range(count) for each in rollouts.get((row, i), [])[:1]]
        graded = [each for each in found if each["reward"] is not None and not each["remove_sample"]]
        data[dataset.name] = {
            "rewards": [each["reward"] for each in graded],
            "truncated": [each["status"] == "truncated" for each in graded],
        }
    return _eval_output(data)


def _run(args, step, rows, count, sampling):
    """Launches `count` rollouts of every row and assembles a sealed batch. Out: by (row, number), the samples as plain
    objects, and the launcher's result for each sealed rollout. A failed rollout has no samples."""
    folder = Path(args.rollbook_run_dir) / "rollouts" / step
    folder.mkdir(parents=True, exist_ok=True)
    tasks = folder / "tasks.jsonl"
    _write_lines(tasks, [_task_of(row) for row in rows])
    revision = _seal_revision(args, step, folder)
    launched = _rollbook(
        args,
        ["launch", "--tasks", str(tasks), "--rows", "slime", "--agent", args.rollbook_agent, "--exp", step, "--json"],
        ["--samples", str(count), "--model", args.rollbook_model_id, "--sampling", json.dumps(sampling)],
        ["--gateway", _start_gateway(args, revision), "--concurrency", str(args.rollbook_max_concurrent)],
        ["--rate", str(args.rollbook_rate), "--time-limit", str(args.rollbook_time_limit)],
        # Exit code 1 can also mean failed rollouts, which are data.
        codes=(0, 1),
    )
    sealed, places = {}, {}
    for line in launched.splitlines():
        result = json.loads(line)
        if result.get("kind") == "rollout" and result["state"] == "sealed":
            place = (result["row"], result["sample"])
            sealed[place], places[result["content"]] = result, place
    if not places:
        return {}, sealed
    try:
        cut = _rollbook(
            args,
            ["batch", "assemble", "--target", revision["id"], "--level", "token", "--json", "--artifact", *places],
        )
    except RuntimeError as error:
        if "[empty-batch]" in str(error):
            return {}, sealed
        raise
    out = folder / "samples.jsonl"
    out.unlink(missing_ok=True)
    # The file leaves out failures: a group with only failures must not stop a step with other groups.
    _rollbook(
        args,
        ["data", "convert", "--to", "slime", "--batch", json.loads(cut)["digest"]],
        ["--uneven", "keep", "--failures", "omit", "--out", str(out)],
    )
    rollouts = defaultdict(list)
    for sample in _read_lines(out):
        rollouts[places[sample["metadata"]["rollbook"]["content"]]].append(sample)
    return rollouts, sealed


def _seal_revision(args, step, folder):
    """Seals the weights that sample in this step as a revision of the book. slime keeps the weights in its own form, so
    the revision holds only a description of them: the model, the run and the step."""
    manifest = folder / "weights.json"
    _write_whole(
        manifest, json.dumps({"model": args.hf_checkpoint, "run": args.rollbook_exp_id, "step": step}, sort_keys=True)
    )
    words = ["train", "weights", str(manifest), "--family", args.rollbook_exp_id, "--id", step, "--json"]
    sealed = json.loads(_rollbook(args, words))
    return {"id": step, "digest": sealed["digest"]}


def _fill(sample, recorded, launched, step):
    """Fills slime's own sample with the recorded rollout. Each further token stream of the rollout gives another
    sample. A rollout that failed, or has no tokens, gives a placeholder."""
    filled = []
    for each in recorded:
        one = copy.copy(sample)
        one.metadata = {**copy.deepcopy(sample.metadata or {}), "rollbook": {**each["metadata"]["rollbook"], "step": step}}
        for name in ("tokens", "response", "response_length", "loss_mask", "rollout_log_probs", "reward", "remove_sample"):
            setattr(one, name, each[name])
        one.status = type(sample).Status(each["status"])
        one.rollout_id = sample.index
        if one.reward is None:
            one.remove_sample = True
        filled.append(one if one.response_length > 0 else _placeholder(one))
    if not filled:
        lost = copy.copy(sample)
        known = {} if launched is None else {"content": launched["content"]}
        lost.metadata = {**copy.deepcopy(sample.metadata or {}), "rollbook": {**known, "step": step}}
        cancelled = launched is not None and launched["ending"]["kind"] == "cancelled"
        lost.status = type(sample).Status("aborted" if cancelled else "failed")
        lost.rollout_id = sample.index
        filled.append(_placeholder(lost))
    return filled


def _placeholder(sample):
    """One masked token, which trains nothing. slime's batches need a fixed number of rollouts, even if one is empty."""
    sample.tokens, sample.response, sample.response_length = [0, 0], "", 1
    sample.loss_mask, sample.rollout_log_probs = [0], [0.0]
    sample.remove_sample = True
    return sample


def _task_of(sample):
    metadata = sample.metadata if isinstance(sample.metadata, dict) else {}
    row = {"prompt": sample.prompt, "metadata": copy.deepcopy(metadata)}
    return row if sample.label is None else {**row, "label": sample.label}


class _row_sample:
    def __init__(self, row):
        self.prompt, self.label, self.metadata = row.get("prompt"), row.get("label"), row.get("metadata")


def _start_gateway(args, revision):
    """Starts the recording gateway in front of slime's engines. A new one for every revision, so that calls name it."""
    global _gateway
    if _gateway is None:
        atexit.register(_stop_gateway)
    _stop_gateway()
    model = {
        "upstream": "sglang",
        "capture": {"tokens": "sglang"},
        "logprobKind": "sampling",
        "family": args.rollbook_exp_id,
        "revision": revision,
    }
    config = Path(args.rollbook_run_dir) / "gateway.json"
    router = f"http://{args.sglang_router_ip}:{args.sglang_router_port}/v1"
    upstreams = {"sglang": {"baseUrl": router}}
    _write_whole(config, json.dumps({"upstreams": upstreams, "models": {args.rollbook_model_id: model}}))
    log = Path(args.rollbook_run_dir) / "gateway.log"
    words = ["gateway", "--config", str(config), "--port", str(args.rollbook_gateway_port), "--log", "json", "--json"]
    with open(log, "ab") as stream:
        _gateway = subprocess.Popen(
            [*args.rollbook_command, *words, "--book", args.rollbook_book], stdout=subprocess.PIPE, stderr=stream
        )
    first = _gateway.stdout.readline()
    if not first:
        raise RuntimeError(f"the gateway did not start; {log} says why")
    return json.loads(first)["url"]


def _stop_gateway():
    if _gateway is not None and _gateway.poll() is None:
        _gateway.terminate()
        try:
            _gateway.wait(timeout=30)
        except subprocess.TimeoutExpired:
            _gateway.kill()


def _rollbook(args, *words, codes=(0,)):
    command = [*args.rollbook_command, *(word for part in words for word in part), "--book", args.rollbook_book]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if done.returncode not in codes:
        raise RuntimeError(f"rollbook {words[0][0]} ended with {done.returncode}: {done.stderr.strip()[-2000:]}")
    return done.stdout


def _read_lines(path):
    with open(path, encoding="utf-8") as lines:
        return [json.loads(line) for line in lines if line.strip()]


def _write_lines(path, rows):
    _write_whole(path, "".join(json.dumps(row) + "\n" for row in rows))


def _write_whole(path, text):
    partial = path.with_name(path.name + ".partial")
    partial.write_text(text, encoding="utf-8")
    os.replace(partial, path)


def _train_output(samples, metrics):
    from slime.rollout.base_types import RolloutFnTrainOutput

    return RolloutFnTrainOutput(samples=samples, metrics=metrics)


def _eval_output(data):
    from slime.rollout.base_types import RolloutFnEvalOutput

    return RolloutFnEvalOutput(data=data)
