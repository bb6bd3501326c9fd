/** Rules of lineage and tokens: the lineage agrees with the chain, and every sampled token has a revision. */
import { sumOf } from "../write/index.ts";
import { type Rule, type RuleContext, sameBits } from "./rule.ts";

const ROWS = 4096;
const LINEAGE = ["chain", "environment", "reward", "target", "policy", "reasons_version"] as const;

/** One row per chain, without contradiction to the chain. */
export const lineage: Rule = {
  needs: {
    lineage: LINEAGE,
    chains: ["source", "target", "steps_start", "steps_count"],
    sources: ["environment"],
    targets: ["config", "reward"],
    steps: ["policy"],
    reasons: ["name"],
  },
  async check({ reader, report }) {
    const targets = await reader.read("targets", ["config", "reward"]);
    for await (const { columns: rows, ...range } of reader.blocks("lineage", LINEAGE, ROWS)) {
      const { from } = range;
      const chain = await reader.read("chains", ["source", "target", "steps_start", "steps_count"], range);
      const environment = await reader.gather("sources", "environment", chain.source);
      const withSteps = chain.steps_start.filter((_, i) => chain.steps_count[i]! > 0);
      const policies = await reader.gather("steps", "policy", withSteps);
      for (let i = 0, step = 0; i < rows.chain.length; i++) {
        const expected: [string, number, number][] = [
          ["chain", rows.chain[i]!, from + i],
          ["environment", rows.environment[i]!, environment[i]!],
          ["reward", rows.reward[i]!, targets.reward[chain.target[i]!]!],
          ["target", rows.target[i]!, targets.config[chain.target[i]!]!],
        ];
        if (chain.steps_count[i]! > 0) expected.push(["policy", rows.policy[i]!, policies[step++]!]);
        for (const [name, actual, wanted] of expected)
          if (actual !== wanted)
            report(`lineage/${name}`, from + i, "lineage", `is ${actual}, the chain says ${wanted}`);
        if (rows.reasons_version[i]! < 0 || rows.reasons_version[i]! > reader.rows("reasons"))
          report(
            "lineage/reasons_version",
            from + i,
            "reasons",
            `version ${rows.reasons_version[i]} of ${reader.rows("reasons")} reason names`,
          );
      }
    }
  },
};

const CHAINS = ["tokens_start", "tokens_count", "final_reward", "logprob_kind"] as const;
const TOKENS = ["logprob", "mask", "reward", "policy"] as const;
const TOKEN_ROWS = 1 << 18;

/** Finite numbers, a revision behind every sampled token, and rewards that sum to the chain's. */
export const tokens: Rule = {
  needs: {
    chains: CHAINS,
    tokens: TOKENS,
    dictionary: ["text"],
  },
  async check(context) {
    const { reader, report } = context;
    const texts = await reader.texts();
    for await (const { from, columns: rows } of reader.blocks("chains", CHAINS, ROWS)) {
      for (let i = 0; i < rows.tokens_count.length; i++) {
        const kind = texts[rows.logprob_kind[i]!];
        const isToken = rows.tokens_count[i]! > 0;
        if (isToken ? kind !== "sampling" && kind !== "model" : kind !== undefined)
          report(
            "chains/logprob_kind",
            from + i,
            "chain",
            `${kind ?? "no kind"} for a chain of ${rows.tokens_count[i]} tokens`,
          );
        if (!isToken) continue;
        const start = Number(rows.tokens_start[i]!);
        const sum = await checkTokens(context, start, start + rows.tokens_count[i]!);
        if (!sameBits(sum, rows.final_reward[i]!))
          report(
            "chains/final_reward",
            from + i,
            "return",
            `${rows.final_reward[i]}; its tokens sum to ${sum}`,
          );
      }
    }
  },
};

/** Returns the sum of the rewards, NaN if there are none. */
async function checkTokens({ reader, report }: RuleContext, start: number, end: number): Promise<number> {
  let sum = 0;
  for (let from = start; from < end; from += TOKEN_ROWS) {
    const block = await reader.read("tokens", TOKENS, { from, to: Math.min(end, from + TOKEN_ROWS) });
    for (let i = 0; i < block.mask.length; i++) {
      if (!Number.isFinite(block.logprob[i]!))
        report("tokens/logprob", from + i, "value", `${block.logprob[i]} is not finite`);
      if (block.mask[i] === 1 && block.policy[i]! < 0)
        report("tokens/policy", from + i, "lineage", "a sampled token without the revision that sampled it");
    }
    sum = sumOf(block.reward, sum);
  }
  return sum;
}
