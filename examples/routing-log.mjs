/** Prints a router's log, one decision a line: the prompt, the chosen model, its probability, the reward and the cost.
 *  "small" quotes as well as "large" does; proofs need "large", which costs ten times as much.
 *  With --outcomes it prints a CSV table with the outcome of both models for every prompt.
 *  With --chains a rollout has two decisions: one for the draft, one for its review, which fixes some bad drafts.
 *  Usage: node routing-log.mjs [decisions] [--outcomes | --chains]. The same arguments print the same log. */

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

/** Draws a choice and prints its row; `solve` draws the outcome of the choice. */
function logDecision({ id, task, chain = id, terminal = true, atMs, prompt, hard }, solve) {
  const probability = { small: hard ? 0.4 : 0.6, large: hard ? 0.6 : 0.4 };
  const chosen = random() < probability.large ? "large" : "small";
  const solved = solve(chosen);
  const row = {
    schema_version: 1,
    decision_id: id,
    session_id: `s-${task}`,
    task_id: `t-${task}`,
    ...(chain === id ? {} : { chain_id: chain }),
    agent_role: "router",
    timestamp: new Date(atMs).toISOString(),
    task_complexity_score: null,
    primary_failure_count: null,
    action_fallback: chosen === "small" ? 0 : 1,
    primary_model: "small",
    fallback_model: "large",
    model_chosen: chosen,
    propensity: probability[chosen],
    reward: solved + COST_WEIGHT * PRICE[chosen],
    terminal,
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

const decisions = Number(process.argv[2] ?? 3000);
const form = process.argv[3];
const perTask = form === "--chains" ? 2 : 1;
if (form === "--outcomes") console.log("question,subject,small,large,small_cost,large_cost");
for (let i = 0; i < decisions / perTask; i++) {
  const hard = random() < 0.5;
  const prompt = `${hard ? "Prove" : "Quote"} lemma ${i} of the book.`;
  const succeeds = (model) => (random() < skill(model, hard) ? 1 : 0);
  const common = { task: i, hard, atMs: 1_700_000_000_000 + i * 1000 };
  if (form === "--outcomes")
    console.log(
      [prompt, "algebra", succeeds("small"), succeeds("large"), PRICE.small, PRICE.large].join(","),
    );
  else if (form === "--chains") {
    const chain = `d-${i}/0`;
    let good = 0;
    logDecision({ ...common, id: chain, terminal: false, prompt }, (model) => {
      good = succeeds(model);
      return 0; // the reward comes with the review
    });
    const review = { ...common, id: `d-${i}/1`, chain, prompt: `Review: ${prompt}` };
    logDecision(review, (model) => good || (model === "large" ? succeeds(model) : 0));
  } else logDecision({ ...common, id: `d-${i}`, prompt }, succeeds);
}
