/** Prints a router's log, one decision a line: the prompt, the chosen model, its probability, the reward and the cost.
 *  "small" quotes as well as "large" does; proofs need "large", which costs ten times as much.
 *  With --outcomes it prints a CSV table with the outcome of both models for every prompt.
 *  Usage: node routing-log.mjs [decisions] [--outcomes]. The same arguments print the same log. */

const PRICE = { small: 0.1, large: 1 };
const COST_WEIGHT = -0.3;

let state = 7;
/** A number in [0, 1) (mulberry32). */
function random() {
  state = (state + 0x6d2b79f5) | 0;
  let bits = Math.imul(state ^ (state >>> 15), 1 | state);
  bits = (bits + Math.imul(bits ^ (bits >>> 7), 61 | bits)) ^ bits;
  return ((bits ^ (bits >>> 14)) >>> 0) / 2 ** 32;
}

/** The probability that a model answers well. */
function skill(model, hard) {
  if (model === "large") return hard ? 0.8 : 0.9;
  return hard ? 0.2 : 0.9;
}

const decisions = Number(process.argv[2] ?? 3000);
const outcomes = process.argv[3] === "--outcomes";
if (outcomes) console.log("question,subject,small,large,small_cost,large_cost");
for (let i = 0; i < decisions; i++) {
  const hard = random() < 0.5;
  const prompt = `${hard ? "Prove" : "Quote"} lemma ${i} of the book.`;
  if (outcomes) {
    const [small, large] = ["small", "large"].map((model) => (random() < skill(model, hard) ? 1 : 0));
    console.log([prompt, "algebra", small, large, PRICE.small, PRICE.large].join(","));
    continue;
  }
  const probability = { small: hard ? 0.4 : 0.6, large: hard ? 0.6 : 0.4 };
  const chosen = random() < probability.large ? "large" : "small";
  const solved = random() < skill(chosen, hard) ? 1 : 0;
  const row = {
    schema_version: 1,
    decision_id: `d-${i}`,
    session_id: `s-${i}`,
    task_id: `t-${i}`,
    agent_role: "router",
    timestamp: new Date(1_700_000_000_000 + i * 1000).toISOString(),
    task_complexity_score: null,
    primary_failure_count: null,
    action_fallback: chosen === "small" ? 0 : 1,
    primary_model: "small",
    fallback_model: "large",
    model_chosen: chosen,
    propensity: probability[chosen],
    reward: solved + COST_WEIGHT * PRICE[chosen],
    terminal: true,
    reward_version: "solved-and-cost",
    data_source: "synthetic",
    state: {
      prompt,
      fields: {},
      candidates: Object.keys(PRICE).map((id) => ({
        id,
        selectable: true,
        reasons: [],
        probability: probability[id],
        features: {},
      })),
      terms: { solved: { value: solved, weight: 1 }, cost: { value: PRICE[chosen], weight: COST_WEIGHT } },
    },
  };
  console.log(JSON.stringify(row));
}
