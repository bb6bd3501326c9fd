/** Implements `rollbook gateway`: records every model call of an agent that changes only its base URL and key. */
import { type Command, Option } from "commander";
import { openGateway } from "../../book/collect/index.ts";
import type { GatewayEvent } from "../../collect/gateway/index.ts";
import { jsonLine, paint, plural, printable } from "../../view/format.ts";
import { renderGatewayEvent } from "../../view/gateway-view.ts";
import { addCommand } from "../command.ts";
import { interrupted } from "../interrupted.ts";
import { hasColor, type Io } from "../io.ts";
import {
  addFreshnessOptions,
  budgetsOf,
  FRESHNESS_GROUP,
  type FreshnessFlags,
  requireTarget,
} from "../options/freshness-options.ts";
import { portNumber } from "../options/numbers.ts";
import { identityFrom } from "../options/run-options.ts";
import { type BookFlags, bookRoot } from "../with-book.ts";

interface GatewayFlags extends BookFlags, FreshnessFlags {
  target?: string;
  config: string;
  port?: number;
  host?: string;
  worker?: string;
  record?: "durable" | "async";
  log?: "pretty" | "json" | "off";
}

export function addGateway(program: Command, io: Io): void {
  const command = addCommand(program, "gateway", {
    summary: "record every model call of an agent that changes only its base URL and key",
    description: `Record every model call of an agent that changes only its base URL and key. Speaks OpenAI chat
completions, responses and completions, and Anthropic messages, and streams replies as the upstream does. A reply is
on disk before the gateway sends its last byte. Runs until interrupted; open rollouts continue at the next start. If
there is no book yet, the command makes one and says so.

Point the agent at http://127.0.0.1:8790/v1 (OPENAI_BASE_URL), the default address. Any key will do, unless tokensEnv in
the configuration names variables that hold access tokens; --host 0.0.0.0 needs them. Without further steps, each call becomes
a separate rollout. To join calls, POST /v1/rollouts {"task":{"id":"t-1"}}, use its \`apiKey\` as the key of the agent, then
POST /v1/rollouts/ID/close, with {"scores":[{"name":"solved","value":1}]} as its reward. An outcome that is known later enters by
\`rollbook feedback ID --gateway URL --name solved --value 1\`; \`train\`, \`evaluate\`, \`gate\` and \`batch assemble\` take it as the
reward with --feedback solved.

To serve a trained router, set router.checkpoint in the configuration to a checkpoint folder that passed \`gate\`, or to
\`released\`, the newest release that fits this configuration. To record the tokens of a model with
their log-probabilities, set \`capture: { tokens: vllm }\` (or sglang) and \`logprobKind\` in its entry; see Tokens in docs/gateway.md.
docs/gateway.md describes the file, docs/reference/settings.md every key.`,
    examples: [
      "rollbook gateway --config gateway.yaml",
      "rollbook gateway --config gateway.yaml --record async --log json",
    ],
  })
    .requiredOption("--config <file>", "the configuration, in YAML; `rollbook init --example` writes one")
    .option(
      "--port <n>",
      "listen on this port; 0 takes a free one (default: the configured one, else 8790)",
      portNumber,
    )
    .option("--host <address>", "listen on this address (default: the configured one, else 127.0.0.1)")
    .option(
      "--worker <name>",
      "name of this gateway, unique among the gateways of a book (default: the configured one, else gateway)",
    )
    .addOption(
      new Option(
        "--record <mode>",
        "durable: send the end of a reply after it is on disk; async: send it at once (default: the configured mode, else durable)",
      ).choices(["durable", "async"]),
    )
    .addOption(
      new Option(
        "--log <form>",
        "a line per call, failover, closed rollout and refusal on stderr (default: pretty on a terminal, else off)",
      ).choices(["pretty", "json", "off"]),
    )
    .optionsGroup(FRESHNESS_GROUP)
    .option(
      "--target <revision>",
      "judge the age of closed rollouts against this policy revision (default: not judged)",
    );
  addFreshnessOptions(command).action((flags: GatewayFlags) => serve(io, flags));
}

async function serve(io: Io, flags: GatewayFlags): Promise<void> {
  const { config, host, port, record, worker, target } = flags;
  requireTarget(flags);
  const book = bookRoot(io, flags);
  const gateway = await openGateway({
    ...{ book, config, host, port, record, worker, target, freshness: budgetsOf(flags) },
    ...{ clock: io.clock, env: io.env, identity: () => identityFrom(io) },
    log: (line) => io.err(`${line}\n`),
    onEvent: eventLog(io, flags.log ?? (io.live ? "pretty" : "off")),
  });
  const { url, recovered, damaged } = gateway;
  const told = { url, book, record: gateway.config.record, recovered, damaged };
  io.out(flags.json ? jsonLine(told) : `${url}\n`);
  if (recovered.length > 0)
    io.err(`${plural(recovered.length, "rollout")} of an earlier run still open: ${namesOf(recovered)}\n`);
  await interrupted();
  io.err("stopping: waiting for calls in progress to finish\n");
  await gateway.close();
}

function eventLog(io: Io, form: "pretty" | "json" | "off"): ((event: GatewayEvent) => void) | undefined {
  if (form === "off") return undefined;
  if (form === "json") return (event) => io.err(jsonLine(event));
  const ink = paint(io.live && hasColor({ ...io, terminal: true }));
  return (event) => io.err(renderGatewayEvent(event, ink));
}

/** Maximum number of names in a line; `GET /v1/rollouts` has all of them. */
const MOST_NAMES = 20;

function namesOf(rollouts: readonly string[]): string {
  const more = rollouts.length > MOST_NAMES ? `, and ${rollouts.length - MOST_NAMES} more` : "";
  return printable(rollouts.slice(0, MOST_NAMES).join(", ")) + more;
}
