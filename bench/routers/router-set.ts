/** The sets for comparing routers: questions with the reward of every candidate, or only of the logged one.
 *  Prices make the single candidates equally good: a router then has most to gain. */
import { type Rng, rngFrom } from "../../src/base/rng.ts";
import { readVowpalCb } from "../../src/convert/vowpal-text.ts";
import { dataFile } from "../judge/part.ts";
import { type RoutedQuestion, readRouteLlm } from "../support/judge/routellm.ts";
import { readMulticlass } from "../support/judge/uci-multiclass.ts";

export type RouterFields = Readonly<Record<string, string | number>>;

interface Questions {
  readonly name: string;
  readonly texts: readonly string[] | null;
  readonly fields: readonly RouterFields[];
  readonly arms: readonly string[];
}

export type RouterSet = Questions &
  (
    | { readonly kind: "full"; readonly rewards: readonly (readonly number[])[] }
    | {
        readonly kind: "logged";
        readonly logged: readonly { chosen: number; reward: number; propensity: number }[];
      }
  );

type Loader = (data: string) => Promise<RouterSet>;

export const ROUTER_SETS: Readonly<Record<string, Loader>> = {
  mmlu: async (data) => priced("MMLU, accuracy", await mmlu(data), 0),
  "mmlu-priced": async (data) => priced("MMLU, accuracy − price", await mmlu(data), 1),
  "gsm8k-priced": async (data) => priced("GSM8K, accuracy − price", await gsm8k(data), 1),
  optdigits: (data) => uci(data, "optdigits"),
  satimage: (data) => uci(data, "satimage"),
  rcv1,
  simulated: async (data) => simulated(await mmlu(data), rngFrom(7)),
};

async function mmlu(data: string): Promise<readonly RoutedQuestion[]> {
  return (await readRouteLlm(dataFile(data, "routellm/mmlu"))).questions;
}

async function gsm8k(data: string): Promise<readonly RoutedQuestion[]> {
  return (await readRouteLlm(dataFile(data, "routellm/gsm8k"))).questions;
}

/** `share` 1: the strong model costs as much as it gains on average. */
function priced(name: string, questions: readonly RoutedQuestion[], share: number): RouterSet {
  const mean = (which: "weak" | "strong") =>
    questions.reduce((sum, one) => sum + Number(one[which]), 0) / questions.length;
  const price = share * (mean("strong") - mean("weak"));
  return {
    kind: "full",
    name,
    texts: questions.map((one) => one.prompt),
    fields: questions.map(({ subject }) => (subject === "" ? {} : { subject })) as RouterFields[],
    arms: ["weak", "strong"],
    rewards: questions.map((one) => [Number(one.weak), Number(one.strong) - price]),
  };
}

async function uci(data: string, name: string): Promise<RouterSet> {
  const rows: { features: Float64Array; label: string }[] = [];
  for await (const row of readMulticlass(dataFile(data, `uci/${name}.data`))) rows.push(row);
  const labels = [...new Set(rows.map((row) => row.label))].sort();
  return {
    kind: "full",
    name: `UCI ${name}`,
    texts: null,
    fields: rows.map(({ features }) =>
      Object.fromEntries(Array.from(features, (value, i) => [`x${i}`, value])),
    ),
    arms: labels,
    rewards: rows.map(({ label }) => labels.map((each) => Number(each === label))),
  };
}

async function rcv1(data: string): Promise<RouterSet> {
  const texts: string[] = [];
  const logged: { chosen: number; reward: number; propensity: number }[] = [];
  for await (const row of readVowpalCb(dataFile(data, "vw/rcv1_raw_cb_small.vw"), { actions: 2 })) {
    texts.push(row.context.map(([name]) => name).join(" "));
    logged.push({ chosen: row.action, reward: row.reward!, propensity: row.propensity! });
  }
  return { kind: "logged", name: "VW rcv1", texts, fields: texts.map(() => ({})), arms: ["1", "2"], logged };
}

const MODELS = 9;
const QUESTIONS = 5600;

/** Nine models on real prompts. Each is good at some subjects and worse on long prompts; failures are shared. */
function simulated(questions: readonly RoutedQuestion[], rng: Rng): RouterSet {
  const picked = rng
    .split("questions")
    .shuffle([...questions])
    .slice(0, QUESTIONS);
  const normal = (key: string) => {
    const own = rng.split(key);
    let sum = -6;
    for (let i = 0; i < 12; i++) sum += own.float();
    return sum;
  };
  const coin = rng.split("coins");
  const arms = Array.from({ length: MODELS }, (_, a) => `model-${a}`);
  return {
    kind: "full",
    name: "simulated, 9 models",
    texts: picked.map((one) => one.prompt),
    fields: picked.map(({ subject }) => ({ subject })),
    arms,
    rewards: picked.map((one) => {
      const hard = Number(one.weak) + Number(one.strong) - 1.5;
      const length = Math.log(one.prompt.length) - 5.5;
      return arms.map((arm) => {
        const skill = 0.8 + 0.5 * normal(arm) + 0.6 * normal(`${arm} ${one.subject}`);
        const score = skill + hard + 0.3 * normal(`${arm} length`) * length;
        return Number(coin.float() < 1 / (1 + Math.exp(-score)));
      });
    }),
  };
}
