/** Defines the options that `launch` and `worker` share: agent, queue, gateway, concurrency. */
import { type Command, Option } from "commander";
import { RollbookError } from "../../base/index.ts";
import { type Identity, identityOf } from "../../book/collect/index.ts";
import { keyringOf } from "../../book/open/index.ts";
import { ISOLATIONS, type Isolation, type Progress } from "../../collect/rollout/index.ts";
import { renderProgress } from "../../view/runs/launch-view.ts";
import type { Io } from "../io.ts";
import { type BookFlags, bookRoot } from "../with-book.ts";
import {
  addFreshnessOptions,
  budgetsOf,
  FRESHNESS_GROUP,
  type FreshnessFlags,
  requireTarget,
} from "./freshness-options.ts";
import { positiveAmount, wholeNumber } from "./numbers.ts";

export interface RunFlags extends FreshnessFlags, IsolationFlags {
  target?: string;
  agent: string;
  queue?: string;
  concurrency: number;
  rate?: number;
  attempts: number;
  claimTtl: number;
  gateway?: string;
  gatewayTokenEnv?: string;
  metrics?: string;
}

export function addRunOptions(
  command: Command,
  { queueDefault, agentRequired = true }: { queueDefault?: string; agentRequired?: boolean },
): Command {
  const agent = new Option(
    "--agent <file|url>",
    `${agentRequired ? "" : "required: "}a .js, .mjs, .ts or .py file, an executable, or a server's URL`,
  );
  command.addOption(agent.makeOptionMandatory(agentRequired).helpGroup("Options:")).optionsGroup("Work:");
  if (queueDefault === undefined)
    command.addOption(
      new Option("--queue <file|url>", "the queue of the launch: a file, or nats://HOST/NAME")
        .makeOptionMandatory()
        .helpGroup("Options:"),
    );
  else command.option("--queue <file|url>", `a file, or nats://HOST/NAME (default: ${queueDefault})`);
  command
    .option(
      "--concurrency <n>",
      `rollouts at a time in this process${queueDefault === undefined ? "" : "; 0 leaves all rollouts to workers"}`,
      wholeNumber,
      16,
    )
    .option("--rate <n>", "most rollouts to start per second (default: no limit)", positiveAmount)
    .option(
      "--attempts <n>",
      "attempts if the provider, the sandbox or the infrastructure fails",
      wholeNumber,
      3,
    )
    .option(
      "--claim-ttl <s>",
      "seconds before an unresponsive worker's claims are released",
      positiveAmount,
      20,
    )
    .option(
      "--gateway <url,…>",
      "record model calls at this gateway, or spread them over several; they must use the same book (default: no gateway)",
    )
    .option(
      "--gateway-token-env <name>",
      "the environment variable with the gateway's token (default: no token)",
    )
    .option(...METRICS_OPTION);
  addIsolationOptions(command)
    .optionsGroup(FRESHNESS_GROUP)
    .option(
      "--target <revision>",
      "judge the age of every rollout against this policy revision (default: not judged)",
    );
  return addFreshnessOptions(command);
}

export const METRICS_OPTION = [
  "--metrics <[host:]port>",
  "serve Prometheus metrics on this port, at /metrics (default: off)",
] as const;

export interface IsolationFlags {
  isolation: Isolation;
  share?: string[];
}

export function addIsolationOptions(command: Command): Command {
  return command
    .addOption(
      new Option(
        "--isolation <how>",
        "isolation of an agent module: bubblewrap, a process of its own, or none; auto is bubblewrap where it works, else process",
      )
        .choices(ISOLATIONS)
        .default("auto"),
    )
    .option(
      "--share <path...>",
      "files and folders that an agent in bubblewrap may read and write (default: none)",
    );
}

/** Converts the flags to the request of the function that works on the book. */
export function workRequest(io: Io, flags: RunFlags & BookFlags) {
  const { agent, queue, concurrency, rate, attempts, claimTtl, gateway: url, target, metrics } = flags;
  requireTarget(flags);
  return {
    ...{ book: bookRoot(io, flags), agent, queue, concurrency, target, metrics, clock: io.clock },
    identity: () => identityFrom(io),
    freshness: budgetsOf(flags),
    claimTtlMs: claimTtl * 1000,
    attempts: { provider: attempts, sandbox: attempts, infrastructure: attempts },
    ...{ isolation: flags.isolation, shared: flags.share },
    ...(flags.gatewayTokenEnv === undefined ? {} : { hiddenEnv: [flags.gatewayTokenEnv] }),
    ...(rate === undefined ? {} : { rate }),
    ...(url === undefined ? {} : { gateway: { url, ...gatewayToken(io, flags.gatewayTokenEnv) } }),
  };
}

/** Value of the variable that `--gateway-token-env` names. */
export function gatewayToken(io: Io, variable: string | undefined): { token?: string } {
  if (variable === undefined) return {};
  const token = io.env[variable];
  if (token) return { token };
  throw new RollbookError(
    "no-key",
    { variable },
    `the environment variable ${variable} is not set. Set it to the token.`,
  );
}

/** Key of the user, created if there is none. */
export function identityFrom(io: Io): Identity {
  return identityOf(keyringOf(io), (path) =>
    io.err(`made a key to sign with, ${path}: keep a copy, share it with no other person\n`),
  );
}

/** Interval of progress lines without a terminal: a log of hours stays readable. */
const QUIET_MS = 5_000;

/** Shows progress on one line of a terminal, with log lines above it; without a terminal it prints a line from time to
 *  time. */
export function progressLine(io: Io) {
  const clear = io.live ? "\r\u001b[K" : "";
  let toldMs: number | undefined;
  return {
    onProgress(progress: Progress) {
      // Nothing is planned yet, and an error may be the only output.
      if (progress.total === 0) return;
      if (io.live) {
        io.err(`${clear}${renderProgress(progress)}`);
        return;
      }
      const nowMs = io.clock.nowMs();
      toldMs ??= nowMs;
      if (nowMs - toldMs < QUIET_MS) return;
      toldMs = nowMs;
      io.err(`${renderProgress(progress)}\n`);
    },
    log: (line: string) => io.err(`${clear}${line}\n`),
    end: () => io.err(clear),
  };
}
