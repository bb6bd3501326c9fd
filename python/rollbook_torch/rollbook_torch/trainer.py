"""One training step: a sealed batch and the weights of revision k in, the weights of revision k + 1 out.

A step is a function of batch, parent weights, optimizer state, options and seed. The process keeps the last weights on
the device, and uses them instead of the file if the digest is the same. A step whose folder exists is not trained
again. Every step is checked: finite loss, changed weights, recorded against recomputed log-probabilities.
"""

import hashlib
import json
import os
import time
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import torch

from . import checkpoint as files
from .batch import TokenBatch, provenance, read_batch, require_trainable
from .mismatch import compare, require_agreement, suspect_layer
from .objectives import clipped_objective, imitation_objective
from .refusal import Refusal, is_out_of_memory
from .tokenizer import digest_of, load_tokenizer

ALGORITHMS = ("grpo", "rloo", "sft", "frozen")
ADVANTAGES = {"grpo": "mean-std", "rloo": "leave-one-out"}


@dataclass
class Options:
    algorithm: str = "grpo"
    #: Settings of AdamW: learning rate, weight decay and betas.
    rate: float = 1e-4
    weight_decay: float = 0.0
    beta1: float = 0.9
    beta2: float = 0.999
    #: Largest gradient norm; larger gradients are scaled down to it.
    gradient_norm: float = 1.0
    #: Passes of the step over the batch, and optimizer steps of each pass.
    passes: int = 2
    minibatches: int = 1
    clip: float = 0.2
    clip_high: float = 0.2
    #: Passes end once the approximate KL divergence from the recorded policy is above this.
    kl_limit: float = 0.1
    #: Largest importance weight of a stale token.
    importance_cap: float = 2.0
    temperature: float = 1.0
    #: Largest difference between recorded and recomputed log-probabilities.
    tolerance: float = 0.02
    #: Rows in memory at a time.
    rows: int = 1024
    seed: int = 0

    @staticmethod
    def of(given: dict) -> "Options":
        unknown = sorted(given.keys() - Options.__dataclass_fields__.keys())
        if unknown:
            raise Refusal("bad-options", f"unknown options: {', '.join(unknown)}.")
        options = Options(**given)
        if options.algorithm not in ALGORITHMS:
            raise Refusal("bad-options", f"algorithm: {options.algorithm} is none of {', '.join(ALGORITHMS)}.")
        return options


class Trainer:
    def __init__(self, device: str):
        self.device = device
        self.deterministic = make_deterministic(device)
        self._model = None
        self._optimizer = None
        #: Digest of the weights on the device.
        self._digest = None
        self._config = None

    def step(self, request: dict) -> dict:
        """The request holds `batch` (path, digest, sha256), `family`, `parent` (folder, digest), `out` and `options`.
        Its `sources` (folder, digest) are older revisions that sampled rows of the batch. Returns the report."""
        out = Path(request["out"])
        key = digest_of(json.dumps(_content_of(request), sort_keys=True).encode())
        known = _known(out, key)
        if known is not None:
            return known
        options = Options.of(request.get("options", {}))
        began = time.perf_counter()
        try:
            report = self._train(request, options)
        except Exception as error:
            self._digest = None  # the device holds the weights of a partial step
            if is_out_of_memory(error):
                if torch.cuda.is_available():
                    torch.cuda.empty_cache()
                raise Refusal(
                    "out-of-memory",
                    f"the step does not fit into the memory of {self.device} with {options.rows} rows at a time. Lower learner.rows, "
                    "which changes how a step is computed and not what it computes, and resume.",
                ) from error
            raise
        trained = time.perf_counter()
        weights = files.save_tensors(dict(self._model.named_parameters()))
        digest = files.weights_digest(weights)
        self._check_change(digest, request["parent"]["digest"], options)
        # Only JSON values, so that the report file reads back as the same report.
        report |= {"key": key, "digest": digest, "options": asdict(options), "deterministic": self.deterministic}
        report |= {"torch": torch.__version__, "device": self.device}
        saved = time.perf_counter()
        report["seconds"] |= {"train": trained - began, "save": saved - trained}
        optimizer = files.save_tensors(*self._optimizer_state())
        contents = {files.WEIGHTS: weights, files.OPTIMIZER: optimizer, files.REPORT: files.to_json(report)}
        files.write_folder(out, contents, Path(request["parent"]["folder"]))
        self._digest = digest
        return report

    def _train(self, request: dict, options: Options) -> dict:
        path = Path(request["batch"]["path"])
        parent = Path(request["parent"]["folder"])
        began = time.perf_counter()
        batch = read_batch(path, request["batch"].get("digest"), request["batch"].get("sha256"))
        tokenizer, tokenizer_digest = load_tokenizer(parent)
        require_trainable(
            batch,
            path,
            family=request["family"],
            tokenizer=tokenizer_digest,
            vocabulary=tokenizer.size,
            on_policy=options.algorithm != "sft",
            about=provenance(path),
        )
        needed = ADVANTAGES.get(options.algorithm)
        if needed is not None and batch.advantage != needed:
            raise Refusal(
                "wrong-advantages", f"{path}: the batch has advantages of kind {batch.advantage}, {options.algorithm} needs {needed}."
            )
        optimizer = self._load(parent, request["parent"]["digest"], options)
        loaded = time.perf_counter()
        rows = Rows(batch, self.device)
        start = self._logprobs_of(rows, options)
        report = {"optimizer": optimizer, "batch": batch.digest, **describe(batch)}
        report["mismatch"] = self._check_recorded(batch, rows, start, request, options)
        compared = time.perf_counter()
        self._before = {name: each.detach().clone() for name, each in self._model.named_parameters()}
        if options.algorithm != "frozen":
            report |= self._passes(rows, start, options)
        report["seconds"] = {"load": loaded - began, "compare": compared - loaded}
        return report

    def _check_recorded(self, batch: TokenBatch, rows: "Rows", start, request: dict, options: Options) -> dict:
        """Compares recorded with recomputed log-probabilities, each row with its sampling weights. Refuses a mismatch.

        Does not compare a row that several revisions sampled, or a row whose weights were not given."""
        older = {each["digest"]: Path(each["folder"]) for each in request.get("sources", [])}
        recomputed, compared, weights_of = start.clone(), torch.zeros_like(rows.stale), {}
        for digest in {request["parent"]["digest"], *older}:
            chosen = torch.tensor([index for index, each in enumerate(batch.sources) if each == digest], device=self.device)
            if len(chosen) == 0:
                continue
            compared[chosen] = True
            if digest in older:
                weights_of[digest] = files.load_tensors(older[digest], digest, self.device)
                recomputed[chosen] = self._logprobs_of(rows, options, chosen, weights_of[digest])
        places = compared[:, None] & (rows.mask > 0)
        found = compare(rows.recorded[places].cpu().numpy(), recomputed[places].cpu().numpy())
        found["rows"] = int(compared.sum())
        if options.algorithm != "sft":
            apart = ((rows.recorded - recomputed).abs() * places).amax(dim=1)
            worst = batch.sources[int(apart.argmax())]
            require_agreement(found, options.tolerance, lambda: self._suspect(batch, worst, weights_of.get(worst), options))
        return found

    def _passes(self, rows: "Rows", start, options: Options) -> dict:
        order = np.random.default_rng(options.seed)
        history, stopped = [], None
        for _ in range(options.passes):
            shuffled = order.permutation(len(rows)) if options.minibatches > 1 else np.arange(len(rows))
            for chosen in np.array_split(shuffled, options.minibatches):
                one = self._optimize(rows, start, torch.from_numpy(np.sort(chosen)).to(self.device), options)
                history.append(one)
                if not np.isfinite(one["loss"]) or not np.isfinite(one["gradient"]):
                    raise Refusal(
                        "not-finite",
                        f"the loss is {one['loss']} and the norm of the gradient {one['gradient']} in optimizer step {len(history)}. "
                        "Nothing was kept. Lower learner.rate, or look at the rewards of the batch.",
                    )
                if options.algorithm != "sft" and one["kl"] > options.kl_limit:
                    stopped = "kl"
                    break
            if stopped is not None:
                break
        return {"steps": len(history), "stopped": stopped, "first": history[0], "last": history[-1]}

    def _optimize(self, rows: "Rows", start, chosen, options: Options) -> dict:
        """One optimizer step over the chosen rows, with only a part of them in memory at a time."""
        self._optimizer.zero_grad(set_to_none=True)
        trained = rows.mask[chosen]
        if options.algorithm == "sft":
            trained = trained * (rows.rewards[chosen] > 0)[:, None]
        total = trained.sum().clamp(min=1)
        sums = {"loss": 0.0, "kl": 0.0, "clipped": 0.0}
        for part in chosen.split(options.rows):
            new = self._logprobs(rows, part, options.temperature)
            mask, weight = rows.mask[part], rows.weights[part][:, None]
            if options.algorithm == "sft":
                loss, _ = imitation_objective(new, rewards=rows.rewards[part], mask=mask)
                facts = {}
            else:
                loss, facts = clipped_objective(
                    new,
                    rows.recorded[part],
                    start[part],
                    advantages=rows.advantages[part],
                    mask=mask,
                    stale=rows.stale[part],
                    clip=options.clip,
                    clip_high=options.clip_high,
                    cap=options.importance_cap,
                )
            loss = (loss * weight).sum() / total
            loss.backward()
            sums["loss"] += loss.detach()
            for name, value in facts.items():
                sums[name] += value / total
        gradient = torch.nn.utils.clip_grad_norm_(self._model.parameters(), options.gradient_norm)
        self._optimizer.step()
        return {name: float(value) for name, value in {**sums, "gradient": gradient, "tokens": total}.items()}

    @torch.no_grad()
    def _logprobs_of(self, rows: "Rows", options: Options, chosen=None, weights: dict | None = None):
        """`chosen`: row numbers (default: all). `weights`: of another revision (default: the weights on the device)."""
        chosen = torch.arange(len(rows), device=self.device) if chosen is None else chosen
        return torch.cat([self._logprobs(rows, part, options.temperature, weights) for part in chosen.split(options.rows)])

    def _logprobs(self, rows: "Rows", part, temperature: float, weights: dict | None = None):
        """Log-probability of every token given the tokens before it; 0 for the first token and for untrained tokens."""
        ids = rows.ids[part]
        logits = self._forward(weights, input_ids=ids, attention_mask=rows.attention[part])[:, :-1].float()
        picked = torch.log_softmax(logits / (temperature or 1.0), dim=-1).gather(2, ids[:, 1:, None])[:, :, 0]
        return torch.nn.functional.pad(picked, (1, 0)) * rows.mask[part]

    def _forward(self, weights: dict | None, **inputs):
        if weights is None:
            return self._model(**inputs, use_cache=False).logits
        return torch.func.functional_call(self._model, weights, kwargs={**inputs, "use_cache": False}).logits

    def _suspect(self, batch: TokenBatch, source: str, weights: dict | None, options: Options) -> str:
        @torch.no_grad()
        def logits_of(ids):
            row = torch.from_numpy(ids.astype(np.int64)).to(self.device)[None]
            return self._forward(weights, input_ids=row)[0].double().cpu().numpy()

        own = [index for index, each in enumerate(batch.sources) if each == source]
        rows = [(batch.ids[index], batch.mask[index], batch.logprobs[index]) for index in own]
        return suspect_layer(rows=rows, logits_of=logits_of, temperature=options.temperature, tolerance=options.tolerance)

    def _load(self, folder: Path, digest: str, options: Options) -> str:
        """Loads the parent's weights and optimizer state. Returns the origin of the state."""
        config = (folder / "config.json").read_bytes()
        if self._digest == digest and self._config == config:
            self._set_options(options)
            return "kept"
        weights = files.read_weights(folder)
        files.require_digest(folder / files.WEIGHTS, weights, digest)
        if self._model is None or self._config != config:
            self._model = files.load_model(folder, self.device, weights).train()
            self._config = config
        else:
            from safetensors.torch import load

            files.assign_weights(self._model, load(weights), folder)
        self._optimizer = torch.optim.AdamW(self._model.parameters(), lr=options.rate)
        self._set_options(options)
        self._digest = digest
        if not (folder / files.OPTIMIZER).exists():
            return "fresh"
        self._set_optimizer_state((folder / files.OPTIMIZER).read_bytes())
        return "read"

    def _set_options(self, options: Options) -> None:
        for group in self._optimizer.param_groups:
            group.update(lr=options.rate, betas=(options.beta1, options.beta2), weight_decay=options.weight_decay)

    def _optimizer_state(self) -> tuple[dict, dict]:
        tensors, steps = {}, 0
        for name, parameter in self._model.named_parameters():
            state = self._optimizer.state.get(parameter)
            if state:
                tensors |= {f"{name}.exp_avg": state["exp_avg"], f"{name}.exp_avg_sq": state["exp_avg_sq"]}
                steps = int(state["step"])
        return tensors, {"steps": str(steps)}

    def _set_optimizer_state(self, content: bytes) -> None:
        from safetensors.torch import load

        tensors = load(content)
        length = int.from_bytes(content[:8], "little")
        steps = float(json.loads(content[8 : 8 + length]).get("__metadata__", {}).get("steps", 0))
        for name, parameter in self._model.named_parameters():
            if f"{name}.exp_avg" in tensors:
                moments = {each: tensors[f"{name}.{each}"].to(self.device) for each in ("exp_avg", "exp_avg_sq")}
                self._optimizer.state[parameter] = {"step": torch.tensor(steps), **moments}

    def _check_change(self, digest: str, parent: str, options: Options) -> None:
        before, self._before = self._before, None
        largest = max(float((each.detach() - before[name]).abs().max()) for name, each in self._model.named_parameters())
        if options.algorithm == "frozen":
            if digest != parent:
                raise Refusal("weights-changed", f"the weights are frozen, and became {digest}. This is a fault of the trainer.")
            return
        if digest == parent or largest == 0:
            raise Refusal(
                "weights-unchanged",
                "the step left every weight as it was. All advantages are 0 (every group has one reward), or the rate is 0. "
                "Use tasks that are sometimes solved and sometimes not, or raise learner.rate.",
            )


class Rows:
    """The batch on the device, padded to its longest row."""

    def __init__(self, batch: TokenBatch, device: str):
        width = max(len(ids) for ids in batch.ids)

        def padded(columns, kind):
            out = np.zeros((len(columns), width), dtype=kind)
            for index, column in enumerate(columns):
                out[index, : len(column)] = column
            return torch.from_numpy(out).to(device)

        self.ids = padded(batch.ids, np.int64)
        self.attention = padded([np.ones(len(ids)) for ids in batch.ids], np.int64)
        self.mask = padded(batch.mask, np.float32)
        self.mask[:, 0] = 0  # the first token has no tokens before it to condition on
        self.recorded = padded(batch.logprobs, np.float32) * self.mask
        self.advantages = padded(batch.advantages, np.float32)
        self.rewards = torch.from_numpy(batch.rewards.astype(np.float32)).to(device)
        self.weights = torch.from_numpy(batch.weights.astype(np.float32)).to(device)
        self.stale = torch.from_numpy(batch.stale).to(device)

    def __len__(self) -> int:
        return len(self.ids)


def describe(batch: TokenBatch) -> dict:
    """Counts that show if the batch has a learning signal."""
    tokens, trained = sum(len(ids) for ids in batch.ids), sum(int(mask.sum()) for mask in batch.mask)
    rewards: dict[str, set] = {}
    for group, reward in zip(batch.groups, batch.rewards.tolist()):
        rewards.setdefault(group, set()).add(reward)
    flat = sum(1 for each in rewards.values() if len(each) == 1)
    return {
        "rows": len(batch.ids),
        "tokens": {"all": tokens, "trained": trained, "share": trained / tokens},
        "groups": {"all": len(rewards), "flat": flat},
        "rewardMean": float(batch.rewards.mean()),
        "stale": int(batch.stale.sum()),
    }


def make_deterministic(device: str) -> str:
    """Turns on deterministic algorithms. Returns the guarantee, in words."""
    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
    torch.use_deterministic_algorithms(True, warn_only=True)
    torch.backends.cuda.matmul.allow_tf32 = False
    torch.backends.cuda.enable_flash_sdp(False)
    torch.backends.cuda.enable_mem_efficient_sdp(False)
    kind = "threads" if device == "cpu" else "device"
    return f"the same batch and weights give the same bytes with this torch on the same {kind}"


def _content_of(request: dict) -> dict:
    return {
        "batch": request["batch"].get("digest") or hashlib.sha256(Path(request["batch"]["path"]).read_bytes()).hexdigest(),
        "family": request["family"],
        "parent": request["parent"]["digest"],
        "options": {name: value for name, value in request.get("options", {}).items() if name != "rows"},
    }


def _known(out: Path, key: str) -> dict | None:
    if not (out / files.REPORT).exists():
        return None
    report = json.loads((out / files.REPORT).read_bytes())
    if report.get("key") != key:
        raise Refusal("exists", f"{out} holds another step. Name another folder.")
    return {**report, "earlier": True}
