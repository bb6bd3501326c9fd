/** Implements `rollbook reward`: analyses the parts of a reward, and serves rewards over HTTP. */
import type { Command } from "commander";
import { RollbookError } from "../../base/index.ts";
import { rewardReport } from "../../book/judge/index.ts";
import { type Isolation, loadAgent } from "../../collect/rollout/index.ts";
import { serveRewards } from "../../serve/index.ts";
import { jsonLine } from "../../view/format.ts";
import { renderRewards } from "../../view/judge/reward-view.ts";
import { addCommand, addGroup } from "../command.ts";
import { interrupted } from "../interrupted.ts";
import type { Io } from "../io.ts";
import { portNumber, positiveAmount, positiveWhole } from "../options/numbers.ts";
import { addRowOptions, type RowFlags, requestOf, withDecisions } from "../options/row-options.ts";
import { addIsolationOptions, gatewayToken } from "../options/run-options.ts";

export function addReward(program: Command, io: Io): void {
  const reward = addGroup(program, "reward", {
    summary: "analyze rewards, or serve them over HTTP",
    examples: ["rollbook reward analyze --data routing.jsonl"],
  });
  addServe(reward, io);
  const command = addCommand(reward, "analyze", {
    summary: "print distributions, outliers and saturation of rewards, and the effect of each weight",
    description: `Print the distribution of rewards by source, candidate and term, with outliers and saturation. Also
show how the ranking of the policies "always this candidate" changes if the weight of a term is 0, halved or doubled.
Decisions without a reward are left out.`,
    examples: ["rollbook reward analyze", "rollbook reward analyze --data routing.jsonl --json"],
  });
  addRowOptions(command, { data: true, families: "all" }).action(
    async (flags: RowFlags & { json?: true }) => {
      const report = await withDecisions(io, flags, (source) => rewardReport(source, requestOf(flags)));
      io.out(flags.json ? jsonLine(report) : renderRewards(report));
    },
  );
}

interface ServeFlags {
  agent: string;
  host: string;
  port: number;
  tokenEnv?: string;
  timeout: number;
  concurrency: number;
  isolation: Isolation;
  share?: string[];
  json?: true;
}

// The test of the layers reads import statements in texts too.
const SCORER_EXAMPLE = `A module with a scorer, agent.mjs:
  ${"import"} { defineRollout, rewardOf } from "rollbook/rollout";
  const scorer = rewardOf("exact", ({ finalState, task }) => (finalState === task.label ? 1 : 0));
  export default defineRollout(() => ({}), { scorer });`;

function addServe(reward: Command, io: Io): void {
  const command = addCommand(reward, "serve", {
    book: false,
    summary: "serve rewards over HTTP for slime's remote_rm",
    description: `Serve rewards over HTTP in the form that slime's --rm-type remote_rm expects: POST {"prompt",
"response", "label"} returns a number. The scorer of an agent module computes the reward and gets the response as the
final state. If the scorer fails, times out or gives no value, the reply is an error, never a number.

${SCORER_EXAMPLE}

docs/topics/executor.md describes scorers with several terms.`,
    examples: ["rollbook reward serve --agent agent.mjs --port 8795"],
  })
    .requiredOption("--agent <file>", "a module whose definition has a scorer")
    .option("--host <address>", "address to listen on", "127.0.0.1")
    .option("--port <n>", "port to listen on; 0 takes a free one", portNumber, 8795)
    .option(
      "--token-env <name>",
      "the environment variable with the token that clients must give (default: no token)",
    )
    .option("--timeout <s>", "seconds to compute one reward", positiveAmount, 60)
    .option("--concurrency <n>", "rewards computed at the same time", positiveWhole, 32);
  addIsolationOptions(command).action((flags: ServeFlags) => serve(io, flags));
}

async function serve(io: Io, flags: ServeFlags): Promise<void> {
  const { agent: path, host, port, timeout, concurrency, isolation } = flags;
  const { token } = gatewayToken(io, flags.tokenEnv);
  const { scorer } = await loadAgent(path, { isolation, shared: flags.share });
  if (scorer === undefined)
    throw new RollbookError(
      "no-scorer",
      { agent: path },
      `${path} has no scorer. Export defineRollout(run, { scorer }) as default, with a scorer from rewardOf or compositeReward; all three are in rollbook/rollout. \`rollbook reward serve --help\` has an example, docs/topics/executor.md describes scorers.`,
    );
  const options = { host, port, timeoutMs: timeout * 1000, concurrency };
  const server = await serveRewards(scorer, { ...options, ...(token === undefined ? {} : { token }) });
  const { name, digest } = scorer;
  io.out(flags.json ? jsonLine({ url: server.url, scorer: { name, digest } }) : `${server.url}\n`);
  await interrupted();
  await server.close();
}
