/** The agent: it asks a model one question and says what the answer is worth. Replace it with your own.
 *  Base URL and key are those of the gateway; the model `auto` leaves the choice to the router. */
/** US dollars for one token, as in gateway.yaml. Without a gateway, models have the names that the server knows. */
const PRICES = { small: 0.2e-6, large: 5e-6, "sim-small": 0.2e-6, "sim-large": 5e-6 };

export default async function solve(task, { baseUrl, apiKey, rolloutConfig, signal }) {
  if (baseUrl === undefined)
    throw new Error(
      "the agent has no gateway to ask. Start `rollbook gateway --config gateway.yaml`, and launch with --gateway and the URL that it prints, or with --base-url and --model for a model server",
    );
  let response;
  try {
    response = await fetch(`${baseUrl}/chat/completions`, {
      method: "POST",
      headers: { "content-type": "application/json", authorization: `Bearer ${apiKey}` },
      body: JSON.stringify({
        model: rolloutConfig.model_id ?? "auto",
        messages: [{ role: "user", content: task.question }],
      }),
      signal,
    });
  } catch (error) {
    if (signal.aborted) throw error;
    return failedByProvider(`${baseUrl} cannot be reached: ${error.cause?.message || error.message}`);
  }
  if (!response.ok) {
    const message = `the model answered ${response.status}: ${reasonIn(await response.text())}`;
    if (response.status >= 500 || response.status === 429) return failedByProvider(message);
    throw new Error(message);
  }
  const { choices, usage } = await response.json();
  const right = Number(choices[0].message.content) === task.answer;
  // The gateway names the model that the router chose.
  const model = response.headers.get("x-rollbook-model") ?? rolloutConfig.model_id;
  if (model === undefined) throw new Error("no model: launch with --model NAME, or through a gateway");
  if (PRICES[model] === undefined)
    throw new Error(`no price is known of the model ${model}. Add it to PRICES in agent.mjs`);
  const costUsd = usage.total_tokens * PRICES[model];
  // A right answer is worth 1; every thousandth of a dollar costs 0.5 of that.
  return { reward: { quality: right ? 1 : 0, cost: { value: costUsd, weight: -500 } } };
}

/** The message of an API error, else the whole reply. */
function reasonIn(reply) {
  try {
    return JSON.parse(reply).error.message ?? reply;
  } catch {
    return reply;
  }
}

/** No failure of the agent: the rollout is tried again. `failedBy` of `rollbook/rollout` throws the same. */
function failedByProvider(message) {
  return { error: { owner: "provider", message } };
}
