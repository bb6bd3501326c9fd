"""verl's own classes load the rows: RLHFDataset the prompts, AgentLoopOutput the rollouts."""

import pyarrow.parquet as pq
import torch
from claims import FOLDER, claim, lines, versions
from omegaconf import OmegaConf
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast
from verl.experimental.agent_loop.agent_loop import AgentLoopMetrics, AgentLoopOutput
from verl.utils.dataset.rl_dataset import RLHFDataset

versions("verl", "transformers", "torch", "tensordict")

base = Tokenizer(models.WordLevel({"<pad>": 0, "<unk>": 1}, unk_token="<unk>"))
base.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
words = PreTrainedTokenizerFast(tokenizer_object=base, pad_token="<pad>", unk_token="<unk>")
words.chat_template = "{% for message in messages %}{{ message['role'] }} {{ message['content'] }} {% endfor %}"

path = str(FOLDER / "prompts.parquet")
(FOLDER / "verl").rename(path)
config = OmegaConf.create({"prompt_key": "prompt", "max_prompt_length": 64, "filter_overlong_prompts": True, "cache_dir": str(FOLDER / "cache")})
data = RLHFDataset(data_files=path, tokenizer=words, config=config)
first = data[0]
claim("RLHFDataset loads every prompt", len(data) == len(lines("slime-prompts")), rows=len(data), fields=sorted(first))
claim("with the ground truth", first["reward_model"]["style"] == "rule" and first["reward_model"]["ground_truth"] != "")

rows = pq.read_table(FOLDER / "verl-agent-loop").to_pylist()
samples = lines("slime")
for row, sample in zip(rows, samples, strict=True):
    metrics = AgentLoopMetrics(**row["metrics"])
    names = ("prompt_ids", "response_ids", "response_mask", "response_logprobs", "reward_score", "num_turns", "extra_fields")
    output = AgentLoopOutput(metrics=metrics, **{name: row[name] for name in names}).as_dict()
    assert torch.equal(torch.cat([output["prompts"], output["responses"]]), torch.tensor(sample["tokens"])), row["uid"]
    assert output["response_mask"].tolist() == sample["loss_mask"], row["uid"]
    assert torch.allclose(output["rollout_log_probs"], torch.tensor(sample["rollout_log_probs"])), row["uid"]
claim("AgentLoopOutput takes every rollout, with the ids, masks and log-probabilities of the batch", True, rows=len(rows))
