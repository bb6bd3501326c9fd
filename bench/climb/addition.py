"""Two-operand addition as a task for a small language model: a base model by supervised training, tasks, evaluation.

    python addition.py base OUT --hidden 256 --layers 6 --seed 1 --until 0.27
    python addition.py evaluate FOLDER... --tasks OUT/held-out.jsonl
    python addition.py plain OUT --steps 60 --seed 1        # the same climb without records
"""

import argparse
import json
import random
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "python" / "rollbook_torch"))

import numpy as np
import torch
from rollbook_torch import checkpoint as files
from rollbook_torch.decode import Prompt, decode
from rollbook_torch.objectives import clipped_objective
from rollbook_torch.tokenizer import Characters

SYMBOLS = "0123456789+="
TOKENIZER = Characters(SYMBOLS)
#: Three digits and the end symbol: sums of operands from 0 to 99 have up to three digits.
MAX_NEW = 4


def main() -> None:
    parser = argparse.ArgumentParser()
    commands = parser.add_subparsers(dest="command", required=True)
    base, evaluate, plain = (commands.add_parser(name) for name in ("base", "evaluate", "plain"))
    base.add_argument("out", type=Path)
    base.add_argument("--hidden", type=int, default=256)
    base.add_argument("--layers", type=int, default=6)
    base.add_argument("--limit", type=int, default=99, help="the largest operand")
    base.add_argument("--rate", type=float, default=5e-4)
    base.add_argument("--batch", type=int, default=256)
    base.add_argument("--until", type=float, default=0.27, help="sampled exact match at which training ends")
    base.add_argument("--every", type=int, default=25, help="steps between evaluations")
    base.add_argument("--held-out", type=float, default=0.2)
    evaluate.add_argument("folders", type=Path, nargs="+")
    evaluate.add_argument("--tasks", type=Path, required=True)
    plain.add_argument("base", type=Path)
    plain.add_argument("--steps", type=int, default=60)
    plain.add_argument("--prompts", type=int, default=256)
    plain.add_argument("--samples", type=int, default=8)
    plain.add_argument("--rate", type=float, default=1e-4)
    plain.add_argument("--passes", type=int, default=2)
    plain.add_argument("--minibatches", type=int, default=1)
    plain.add_argument("--at", default="10,30,60", help="steps after which it is evaluated")
    plain.add_argument("--decay", default="0,0,1", help="FROM,UNTIL,TO: steps between which the rate falls, and the share that it falls to")
    for each in (base, evaluate, plain):
        each.add_argument("--seed", type=int, default=1)
        each.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
        each.add_argument("--threads", type=int)
    options = parser.parse_args()
    if options.threads is not None:
        torch.set_num_threads(options.threads)
    {"base": make_base, "evaluate": evaluate_folders, "plain": plain_loop}[options.command](options)


def make_base(options) -> None:
    from transformers import LlamaConfig, LlamaForCausalLM

    torch.manual_seed(options.seed)
    config = LlamaConfig(
        vocab_size=TOKENIZER.size,
        hidden_size=options.hidden,
        intermediate_size=options.hidden * 8 // 3 // 32 * 32,
        num_hidden_layers=options.layers,
        num_attention_heads=max(2, options.hidden // 64),
        max_position_embeddings=64,
        tie_word_embeddings=False,
        **dict(bos_token_id=TOKENIZER.bos, eos_token_id=TOKENIZER.eos, pad_token_id=TOKENIZER.pad),
    )
    model = LlamaForCausalLM(config).to(options.device)
    tasks, held_out = split_pairs(options.limit, options.held_out)
    width = len("99+99=198") + 2
    rows = torch.zeros((len(tasks), width), dtype=torch.long)
    trained = torch.zeros((len(tasks), width))
    for index, (a, b) in enumerate(tasks):
        prompt, answer = TOKENIZER.prompt(f"{a}+{b}="), [*TOKENIZER.encode(str(a + b)), TOKENIZER.eos]
        rows[index, : len(prompt) + len(answer)] = torch.tensor(prompt + answer)
        trained[index, len(prompt) : len(prompt) + len(answer)] = 1
    rows, trained = rows.to(options.device), trained.to(options.device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=options.rate)
    order = random.Random(options.seed)
    began, match, step = time.perf_counter(), 0.0, 0
    while match < options.until:
        chosen = torch.tensor(order.sample(range(len(tasks)), min(options.batch, len(tasks))), device=options.device)
        ids, mask = rows[chosen], trained[chosen][:, 1:]
        logits = model(input_ids=ids, attention_mask=(ids != TOKENIZER.pad).long()).logits[:, :-1].float()
        loss = -torch.log_softmax(logits, -1).gather(2, ids[:, 1:, None])[:, :, 0]
        loss = (loss * mask).sum() / mask.sum()
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        step += 1
        if step % options.every == 0:
            match = exact_match(model, held_out[:500], seed=options.seed)
            print(f"step {step}: loss {loss.item():.3f}, sampled exact match {match:.3f}", file=sys.stderr, flush=True)
    options.out.mkdir(parents=True, exist_ok=True)
    weights = files.save_tensors(dict(model.named_parameters()))
    (options.out / files.WEIGHTS).write_bytes(weights)
    config.architectures = ["LlamaForCausalLM"]
    (options.out / "config.json").write_text(config.to_json_string(use_diff=False))
    (options.out / "characters.json").write_text(json.dumps({"symbols": SYMBOLS}) + "\n")
    write_tasks(options.out / "tasks.jsonl", tasks)
    write_tasks(options.out / "held-out.jsonl", held_out)
    report = {
        **{"seed": options.seed, "steps": step, "seconds": round(time.perf_counter() - began, 2)},
        "parameters": sum(each.numel() for each in model.parameters()),
        **{"digest": files.weights_digest(weights), "trainingPairs": len(tasks), "heldOutPairs": len(held_out)},
        "heldOut": evaluation(model, held_out, options.seed),
    }
    (options.out / "base.json").write_text(json.dumps(report, indent=1) + "\n")
    print(json.dumps(report))


def split_pairs(limit: int, share: float) -> tuple[list, list]:
    """The same split for every seed, so that every run has the same held-out pairs."""
    pairs = [(a, b) for a in range(limit + 1) for b in range(limit + 1)]
    random.Random(20260).shuffle(pairs)
    held_out = int(len(pairs) * share)
    return pairs[held_out:], pairs[:held_out]


def write_tasks(path: Path, pairs: list) -> None:
    lines = [json.dumps({"prompt": f"{a}+{b}=", "label": str(a + b), "metadata": {"question": f"{a}+{b}="}}) for a, b in pairs]
    path.write_text("\n".join(lines) + "\n")


def read_tasks(path: Path) -> list:
    return [tuple(int(each) for each in json.loads(line)["prompt"].rstrip("=").split("+")) for line in path.read_text().splitlines()]


def sample(model, pairs: list, *, seed: int, temperature: float = 1.0, samples: int = 1) -> list[Prompt]:
    """The seed of each prompt is a function of seed, position and sample."""
    base = seed * 1_000_003
    prompts = [
        Prompt(TOKENIZER.prompt(f"{a}+{b}="), seed=base + index * 131 + number, max_tokens=MAX_NEW, temperature=temperature)
        for index, (a, b) in enumerate(pairs)
        for number in range(samples)
    ]
    for first in range(0, len(prompts), 2048):
        decode(model, prompts[first : first + 2048], TOKENIZER.pad, TOKENIZER.eos)
    return prompts


def exact_match(model, pairs: list, *, seed: int, temperature: float = 1.0) -> float:
    model.eval()
    drawn = sample(model, pairs, seed=seed, temperature=temperature)
    model.train()
    return float(np.mean([is_right(each, pair) for each, pair in zip(drawn, pairs)]))


def is_right(each: Prompt, pair: tuple) -> bool:
    return each.finish == "stop" and TOKENIZER.decode(each.tokens) == str(sum(pair))


def evaluation(model, pairs: list, seed: int) -> dict:
    sampled, greedy = (exact_match(model, pairs, seed=seed, temperature=t) for t in (1.0, 0.0))
    return {"sampled": round(sampled, 4), "greedy": round(greedy, 4), "pairs": len(pairs)}


def evaluate_folders(options) -> None:
    pairs = read_tasks(options.tasks)
    for folder in options.folders:
        model = files.load_model(folder, options.device)
        print(json.dumps({"folder": folder.name, **evaluation(model, pairs, options.seed)}), flush=True)


def plain_loop(options) -> None:
    """Samples, scores and trains in one process, without records."""
    model = files.load_model(options.base, options.device).train()
    tasks, held_out = (read_tasks(options.base / name) for name in ("tasks.jsonl", "held-out.jsonl"))
    optimizer = torch.optim.AdamW(model.parameters(), lr=options.rate, weight_decay=0.0)
    order = random.Random(options.seed)
    wanted = {int(each) for each in options.at.split(",")}
    seconds, tokens, curve = {"sample": 0.0, "train": 0.0}, 0, {0: evaluation(model, held_out, options.seed)}
    rewards = []
    for step in range(1, options.steps + 1):
        began = time.perf_counter()
        pairs = order.sample(tasks, options.prompts)
        model.eval()
        drawn = sample(model, pairs, seed=options.seed * 7919 + step, samples=options.samples)
        model.train()
        right = np.array([is_right(each, pairs[index // options.samples]) for index, each in enumerate(drawn)], dtype=np.float32)
        rewards.append(round(float(right.mean()), 4))
        sampled = time.perf_counter()
        for group in optimizer.param_groups:
            group["lr"] = options.rate * rate_share(options.decay, step)
        tokens += plain_step(model, optimizer, drawn, right.reshape(options.prompts, options.samples), options)
        if options.device != "cpu":
            torch.cuda.synchronize()
        seconds["sample"] += sampled - began
        seconds["train"] += time.perf_counter() - sampled
        if step in wanted or step == options.steps:
            curve[step] = evaluation(model, held_out, options.seed)
    total = sum(seconds.values())
    print(
        json.dumps(
            {
                **{"seed": options.seed, "steps": options.steps, "rollouts": options.prompts * options.samples, "curve": curve},
                **{"rewardMean": rewards, "secondsPerStep": round(total / options.steps, 4)},
                **{name: round(value / options.steps, 4) for name, value in seconds.items()},
                "trainedTokensPerSecond": round(tokens / total),
                "rate": options.rate,
                "passes": options.passes,
                "minibatches": options.minibatches,
            }
        )
    )


def rate_share(decay: str, step: int) -> float:
    """The schedule of `learner.decay`: 1 up to the first step, then linear down to `share` at the last step."""
    first, last, share = (float(each) for each in decay.split(","))
    passed = min(1.0, max(0.0, (step - first) / (last - first))) if last > first else 0.0
    return 1 - (1 - share) * passed


def plain_step(model, optimizer, drawn: list[Prompt], rewards: np.ndarray, options) -> int:
    device = options.device
    width = max(len(each.ids) + len(each.tokens) for each in drawn)
    ids, mask, recorded = (np.zeros((len(drawn), width), dtype=kind) for kind in (np.int64, np.float32, np.float32))
    for row, each in enumerate(drawn):
        start, end = len(each.ids), len(each.ids) + len(each.tokens)
        ids[row, :end] = each.ids + each.tokens
        mask[row, start:end] = 1
        recorded[row, start:end] = each.logprobs
    spread = rewards.std(axis=1, keepdims=True)
    advantages = ((rewards - rewards.mean(axis=1, keepdims=True)) / (spread + 1e-6)).reshape(-1, 1).repeat(width, axis=1)
    ids, mask, recorded, advantages = (torch.from_numpy(each.astype(each.dtype)).to(device) for each in (ids, mask, recorded, advantages.astype(np.float32)))
    never = torch.zeros(len(drawn), dtype=torch.bool, device=device)
    for _ in range(options.passes):
        for part in torch.randperm(len(drawn), device=device).chunk(options.minibatches):
            logits = model(input_ids=ids[part], attention_mask=(ids[part] != TOKENIZER.pad).long()).logits[:, :-1].float()
            new = torch.log_softmax(logits, -1).gather(2, ids[part][:, 1:, None])[:, :, 0]
            new = torch.nn.functional.pad(new, (1, 0)) * mask[part]
            loss, _ = clipped_objective(
                new, recorded[part], new.detach(), advantages=advantages[part], mask=mask[part], stale=never[part], clip=0.2, clip_high=0.2, cap=2.0
            )
            optimizer.zero_grad(set_to_none=True)
            (loss.sum() / mask[part].sum()).backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
    return int(mask.sum())


if __name__ == "__main__":
    main()
