"""An agent with Python's standard library alone: reads one request on stdin, prints one result on stdout."""
import json
import sys
import urllib.error
import urllib.request

request = json.load(sys.stdin)
task, config = request["payload"], request["rollout_config"]

call = urllib.request.Request(
    config["base_url"] + "/chat/completions",
    data=json.dumps({
        "model": config.get("model_id", "tiny"),
        "messages": [
            {"role": "system", "content": "Answer with one number."},
            {"role": "user", "content": task["question"]},
        ],
    }).encode(),
    headers={"content-type": "application/json", "authorization": "Bearer " + config["api_key"]},
)
try:
    with urllib.request.urlopen(call, timeout=60) as reply:
        text = json.load(reply)["choices"][0]["message"]["content"]
except urllib.error.HTTPError as error:
    # Say whose fault it is: a provider that fails is tried again and counts against no policy.
    owner = "provider" if error.code >= 500 else "agent"
    print(json.dumps({"error": {"owner": owner, "message": f"the model answered {error.code}"}}))
    sys.exit(0)

print(json.dumps({"reward": 1 if text.strip() == str(task["answer"]) else 0, "metrics": {"length": len(text)}}))
