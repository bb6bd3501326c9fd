/** Asks a model for three sums, with a pause after each, and returns the model's replies. The check of the example
 *  looks for these replies in the recorded calls. */
import { setTimeout as sleep } from "node:timers/promises";

export const QUESTIONS = 3;

export default async function addUp({ a, b }, { baseUrl, apiKey, signal, rolloutConfig }) {
  const heard = [];
  try {
    for (let i = 0; i < QUESTIONS; i++) {
      heard.push(await ask(`${a} + ${b + i}`));
      await sleep(150, undefined, { signal });
    }
  } catch (error) {
    // An unavailable gateway is not a fault of the agent: the rollout is retried.
    return { error: { owner: "infrastructure", message: String(error) } };
  }
  return { reward: Number(heard[0]) === a + b ? 1 : 0, finalState: heard };

  async function ask(content) {
    const response = await fetch(`${baseUrl}/chat/completions`, {
      method: "POST",
      headers: { authorization: `Bearer ${apiKey}`, "content-type": "application/json" },
      body: JSON.stringify({ model: rolloutConfig.model_id, messages: [{ role: "user", content }] }),
      signal,
    });
    if (!response.ok) throw new Error(`${response.status} ${await response.text()}`);
    return (await response.json()).choices[0].message.content;
  }
}
