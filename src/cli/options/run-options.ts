/** What `launch` and `worker` have in common: agent, queue, gateway, how much at a time. */
import { type Command, InvalidArgumentError } from "commander";
import { RollbookError } from "../../base/index.ts";
import { ensureKey, keyringOf, trustedKeys } from "../../book/keyring.ts";
import { HEARTBEAT_MS } from "../../collect/queue/queue.ts";
import { bookRecorder, gatewayRecorder, type Recorder } from "../../collect/rollout/index.ts";
import type { PublicKey, Signer } from "../../contract/index.ts";
import { wholeNumber } from "../command.ts";
import type { Io } from "../io.ts";
import { addFreshnessOptions, type FreshnessFlags } from "./freshness-options.ts";

export interface RunFlags extends FreshnessFlags {
  target?: string;
  agent: string;
  queue?: string;
  concurrency: number;
  rate?: number;
  attempts: number;
  claimTtl: number;
  gateway?: string;
  gatewayTokenEnv?: string;
}

export function addRunOptions(command: Command, { queueDefault }: { queueDefault?: string }): Command {
  command.requiredOption(
    "--agent <file|url>",
    "a .js, .mjs, .ts or .py file, an executable, or a server's URL",
  );
  if (queueDefault === undefined)
    command.requiredOption("--queue <file>", "the queue that the launch writes");
  else command.option("--queue <file>", `the queue (default: ${queueDefault})`);
  command
    .option("--concurrency <n>", "rollouts at a time in this process", wholeNumber, 16)
    .option("--rate <n>", "rollouts begun per second, at most", positiveNumber)
    .option("--attempts <n>", "attempts when a provider, a sandbox or we ourselves fail", wholeNumber, 3)
    .option("--claim-ttl <s>", "seconds after which a silent worker loses its claims", positiveNumber, 20)
    .option("--gateway <url>", "record model calls at this gateway; it must write to the same book")
    .option("--gateway-token-env <name>", "the environment variable with the gateway's token")
    .option("--target <revision>", "judge the freshness of every rollout against this policy revision");
  return addFreshnessOptions(command);
}

/** The gateway's recorder, or the book's. */
export function recorderFrom(io: Io, { gateway: url, gatewayTokenEnv }: RunFlags): { recorder: Recorder } {
  const own = bookRecorder();
  if (url === undefined) return { recorder: own };
  return { recorder: gatewayRecorder({ url, ...gatewayToken(io, gatewayTokenEnv) }, own) };
}

/** The value of the variable that `--gateway-token-env` names. */
export function gatewayToken(io: Io, variable: string | undefined): { token?: string } {
  if (variable === undefined) return {};
  const token = io.env[variable];
  if (token) return { token };
  throw new RollbookError(
    "no-key",
    { variable },
    `the environment variable ${variable} is not set. Set it to the gateway's token.`,
  );
}

/** The key with which rollouts are signed and workers register, made if there is none, and the keys that count beside it. */
export function identityFrom(io: Io): { signer: Signer; trusts: (key: PublicKey) => boolean } {
  const keyring = keyringOf(io);
  const { signer, created } = ensureKey(keyring);
  if (created) io.err(`made a key to sign with, ${keyring.keyPath}: keep a copy, give it to nobody\n`);
  const trusted = trustedKeys(keyring, () => {});
  return { signer, trusts: (key) => trusted.has(key) };
}

/** Often enough for the claims and for the desk, which takes a silent worker for dead. */
export function heartbeatMsOf({ claimTtl }: RunFlags): number {
  return Math.min(HEARTBEAT_MS, (claimTtl * 1000) / 2);
}

function positiveNumber(text: string): number {
  const value = Number(text);
  if (!/^\d+(\.\d+)?$/.test(text) || value <= 0)
    throw new InvalidArgumentError("It must be a number greater than 0.");
  return value;
}
