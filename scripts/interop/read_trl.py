"""Two steps of TRL's SFT, DPO, KTO and GRPO trainers on the CPU, with a tiny random model, over an exported batch."""

import torch
from claims import FOLDER, claim, lines, versions
from datasets import load_dataset
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast, Qwen2Config, Qwen2ForCausalLM
from trl import DPOConfig, DPOTrainer, GRPOConfig, GRPOTrainer, KTOConfig, KTOTrainer, SFTConfig, SFTTrainer

versions("trl", "transformers", "torch", "datasets")
torch.manual_seed(0)

TEMPLATE = (
    "{% for message in messages %}<{{ message['role'] }}> {% if message['role'] == 'assistant' %}{% generation %}"
    "{{ message['content'] }}{% endgeneration %}{% else %}{{ message['content'] }}{% endif %} <end> {% endfor %}"
    "{% if add_generation_prompt %}<assistant> {% endif %}"
)


def tokenizer():
    words = {"<pad>": 0, "<end>": 1, "<unk>": 2}
    for text in " ".join(str(line) for line in lines("trl-sft")).replace("'", " ").replace(",", " ").split():
        words.setdefault(text, len(words))
    for index in range(len(words), 512):
        words[f"word-{index}"] = index
    base = Tokenizer(models.WordLevel(words, unk_token="<unk>"))
    base.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    made = PreTrainedTokenizerFast(tokenizer_object=base, pad_token="<pad>", eos_token="<end>", unk_token="<unk>")
    made.chat_template = TEMPLATE
    return made


def model(size):
    return Qwen2ForCausalLM(
        Qwen2Config(vocab_size=size, hidden_size=32, intermediate_size=64, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2)
    )


def common(name, **more):
    return dict(
        output_dir=str(FOLDER / f"out-{name}"), max_steps=2, report_to="none", save_strategy="no", logging_steps=1,
        use_cpu=True, bf16=False, learning_rate=1e-3, **more,
    )


def train(name, trainer):
    before = torch.cat([each.detach().flatten().clone() for each in trainer.model.parameters()])
    loss = trainer.train().training_loss
    after = torch.cat([each.detach().flatten() for each in trainer.model.parameters()])
    moved = float((after - before).abs().max())
    claim(f"{name} takes two steps and moves the weights", trainer.state.global_step == 2 and moved > 0, loss=round(loss, 4), moved=round(moved, 6))


def data(name):
    return load_dataset("json", data_files=str(FOLDER / name), split="train")


words = tokenizer()
size = len(words)
sft = SFTConfig(**common("sft", per_device_train_batch_size=4, max_length=64))
train("SFTTrainer on trl-sft", SFTTrainer(model=model(size), args=sft, train_dataset=data("trl-sft"), processing_class=words))

dpo = DPOConfig(**common("dpo", per_device_train_batch_size=2, max_length=64))
train("DPOTrainer on trl-dpo", DPOTrainer(model=model(size), ref_model=model(size), args=dpo, train_dataset=data("trl-dpo"), processing_class=words))

kto = KTOConfig(**common("kto", per_device_train_batch_size=4, max_length=64))
labels = [row["label"] for row in lines("trl-kto")]
claim("trl-kto has both labels, half of each", labels.count(True) == labels.count(False) == 8, rows=len(labels))
train("KTOTrainer on trl-kto", KTOTrainer(model=model(size), ref_model=model(size), args=kto, train_dataset=data("trl-kto"), processing_class=words))

rollouts = {}
for row in lines("trl-rollouts"):
    rollouts.setdefault(row["prompt"][-1]["content"], []).append(row)
used = {}


def replay(prompts, trainer):
    """Returns the exported rollouts of each prompt, in turn, with their recorded log-probabilities."""
    found = []
    for prompt in prompts:
        question = prompt[-1]["content"]
        rows = rollouts[question]
        used[question] = used.get(question, 0) + 1
        found.append(rows[(used[question] - 1) % len(rows)])
    first = [row["completion_mask"].index(1) for row in found]
    return {
        "prompt_ids": [row["input_ids"][:at] for row, at in zip(found, first)],
        "completion_ids": [row["input_ids"][at:] for row, at in zip(found, first)],
        "logprobs": [row["old_log_probs"][at:] for row, at in zip(found, first)],
        "env_mask": [row["completion_mask"][at:] for row, at in zip(found, first)],
        "recorded": [row["metrics"]["reward"] for row in found],
    }


def recorded_reward(prompts, completions, recorded, **columns):
    assert all(label is not None for label in columns["label"]), "the label column reaches the reward"
    return recorded


grpo = GRPOConfig(**common("grpo", per_device_train_batch_size=4, num_generations=4, max_completion_length=8, beta=0.0))
trainer = GRPOTrainer(
    model=model(size), args=grpo, train_dataset=data("trl-grpo"), processing_class=words, reward_funcs=recorded_reward, rollout_func=replay
)
train("GRPOTrainer on trl-grpo with the rollouts of trl-rollouts", trainer)
norms = [entry["grad_norm"] for entry in trainer.state.log_history if "grad_norm" in entry]
claim("and the advantages of the batch give a gradient", all(norm > 1e-4 for norm in norms), grad_norms=norms)
rewards = [entry["reward"] for entry in trainer.state.log_history if "reward" in entry]
claim("the rewards that GRPO logs are those of the batch", all(abs(reward - 0.375) < 1e-6 for reward in rewards), rewards=rewards)
