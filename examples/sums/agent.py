"""An agent in Python. `rollbook launch --agent agent.py` needs no installation; elsewhere: pip install rollbook."""
from rollbook import Rollout, executor


@executor
def add(task: dict, rollout: Rollout) -> dict:
    messages = [
        {"role": "system", "content": "Answer with one number."},
        {"role": "user", "content": task["question"]},
    ]
    # An uncaught error of the model is the provider's failure: Rollbook retries it, and it counts against no policy.
    reply = rollout.chat(messages, model=rollout.config.get("model_id", "tiny"))
    text = reply["choices"][0]["message"]["content"]
    return {"reward": 1 if text.strip() == str(task["answer"]) else 0, "metrics": {"length": len(text)}}


if __name__ == "__main__":
    add.run()
