"""Samples of `rollbook data convert --to slime` as the torch file that slime loads, and back.

    python slime_samples.py write samples.jsonl rollout_0.pt --rollout-id 0
    python slime_samples.py read rollout_0.pt samples.jsonl

slime reads the file with --load-debug-rollout-data rollout_0.pt. A failure outside the baseline has remove_sample set
and no reward. slime's own normalization needs a reward for every sample, and treats groups of different sizes as one
group. Train with --custom-reward-post-process-path slime_samples.post_process_rewards instead. """

import argparse
import json
import os


def check(sample, line):
    """Checks the invariants of slime's Sample. Refuses a file that breaks an invariant, with the line."""
    length = sample["response_length"]
    for name in ("loss_mask", "rollout_log_probs"):
        if len(sample[name]) != length:
            raise ValueError(f"line {line}: {name} has {len(sample[name])} values, response_length is {length}")
    if len(sample["tokens"]) < length:
        raise ValueError(f"line {line}: {len(sample['tokens'])} tokens are fewer than response_length {length}")
    if sample["reward"] is None and not sample["remove_sample"]:
        raise ValueError(f"line {line}: a sample without a reward must have remove_sample")


def read_samples(path):
    with open(path, encoding="utf-8") as file:
        for line, text in enumerate(file, 1):
            sample = json.loads(text)
            check(sample, line)
            yield sample


def write(source, target, rollout_id):
    import torch

    samples = list(read_samples(source))
    # A rename makes the file appear only when it is complete.
    partial = f"{target}.partial"
    torch.save({"rollout_id": rollout_id, "samples": samples}, partial)
    os.replace(partial, target)
    return len(samples)


def read(source, target):
    import torch

    # Loads only plain data, because a pickle from another program could run code.
    samples = torch.load(source, weights_only=True)["samples"]
    with open(f"{target}.partial", "w", encoding="utf-8") as file:
        for sample in samples:
            file.write(json.dumps(sample, separators=(",", ":"), ensure_ascii=False) + "\n")
    os.replace(f"{target}.partial", target)
    return len(samples)


def post_process_rewards(args, samples):
    """Normalizes rewards within each group, over the rollouts with a reward. A removed sample gets 0 after that.

    For slime's --custom-reward-post-process-path. A rollout that was split into several samples counts once.
    """
    raw = [None if sample.remove_sample else sample.get_reward_value(args) for sample in samples]
    groups = {}
    for sample, reward in zip(samples, raw):
        if reward is not None:
            groups.setdefault(sample.group_index, {})[sample.rollout_id] = reward
    statistics = {}
    for group, rewards in groups.items():
        values = list(rewards.values())
        mean = sum(values) / len(values)
        spread = (sum((value - mean) ** 2 for value in values) / max(1, len(values) - 1)) ** 0.5
        statistics[group] = (mean, spread)
    normalized = []
    for sample, reward in zip(samples, raw):
        if reward is None:
            normalized.append(0.0)
            continue
        mean, spread = statistics[sample.group_index]
        scale = spread + 1e-6 if getattr(args, "grpo_std_normalization", True) else 1.0
        normalized.append((reward - mean) / scale)
    # The log of raw rewards accepts only numbers, so a removed sample shows the mean of its group.
    shown = [
        statistics.get(sample.group_index, (0.0, 0.0))[0] if reward is None else reward
        for sample, reward in zip(samples, raw)
    ]
    return shown, normalized


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    commands = parser.add_subparsers(dest="command", required=True)
    for name in ("write", "read"):
        command = commands.add_parser(name)
        command.add_argument("source")
        command.add_argument("target")
        if name == "write":
            command.add_argument("--rollout-id", type=int, default=0)
    arguments = parser.parse_args()
    if os.path.exists(arguments.target):
        parser.error(f"{arguments.target} is there already; name another file")
    if arguments.command == "write":
        count = write(arguments.source, arguments.target, arguments.rollout_id)
    else:
        count = read(arguments.source, arguments.target)
    print(f"{arguments.target}: {count} samples")


if __name__ == "__main__":
    main()
