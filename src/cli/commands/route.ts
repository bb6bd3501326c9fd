/** Implements `rollbook route`: shows the choice of a router, explains the choice of a recorded call, and lists rollbacks. */
import { type Command, InvalidArgumentError } from "commander";
import { isObject, parseJson, RollbookError } from "../../base/index.ts";
import { wrongUsage } from "../../book/decisions/index.ts";
import { isBook, keyringOf, trustedKeys } from "../../book/open/index.ts";
import { askRouter, explainCall, listRollbacks, readRouterFile } from "../../book/serve/index.ts";
import type { PublicKey } from "../../contract/index.ts";
import { neverSentWarning } from "../../policy/index.ts";
import { checkRouterConfig } from "../../serve/index.ts";
import { readText } from "../../store/index.ts";
import { jsonLine } from "../../view/format.ts";
import { renderAsked, renderExplained, renderRollbacks } from "../../view/route-view.ts";
import { addCommand, addGroup } from "../command.ts";
import type { Io } from "../io.ts";
import { type BookFlags, bookRoot, withBook } from "../with-book.ts";

interface AskFlags extends BookFlags {
  config?: string;
  checkpoint?: string;
  prompt?: string;
  request?: string;
  field?: Record<string, string | number | boolean>;
  candidate?: string[];
  call?: string;
  allowUngated?: true;
  json?: true;
}

export function addRoute(program: Command, io: Io): void {
  const route = addGroup(program, "route", {
    summary: "ask a router for a decision, or explain a recorded one; `gateway` serves it",
    examples: [
      "rollbook route ask --config router.yaml --prompt 'Prove it.'",
      "rollbook route explain r-0001.0",
    ],
  });
  addCommand(route, "ask", {
    summary: "print what the router would choose for a prompt, and why; nothing is called or recorded",
    description: `Ask the configured router for one decision, as the gateway would for a chat request with this one
message, or for the whole request that --request gives. The \`model\` of that request names the route of the gateway.
Nothing is called or recorded. The configuration is the gateway's file, or another with a \`router:\` section;
docs/reference/serve.md lists the environment variables that override it.

A learned policy of the configuration decides only if a gate verdict of the book releases it. The policy that
--checkpoint names decides without a verdict and for every call, except below its confidence floor; the answer says if
no verdict releases it.`,
    examples: [
      "rollbook route ask --checkpoint policies/learned 'Prove that 2 is prime.'",
      "rollbook route ask --config gateway.yaml 'Prove that 2 is prime.'",
      "rollbook route ask --config gateway.yaml --request request.json",
      "rollbook route ask --config router.yaml --prompt hello --field tools=2 --candidate small large --json",
    ],
  })
    .option(
      "--config <file>",
      "the gateway's file, or another with a router section (default: only environment variables)",
    )
    .option(
      "--checkpoint <dir>",
      "the policy, a folder that `train` wrote; `run status` names those of a loop (default: that of the configuration)",
    )
    .argument("[prompt]", "the user's last message, unless --prompt gives it")
    .option("--prompt <text>", "the user's last message")
    .option("--request <file>", "a chat request as JSON, with its messages and tools; - reads standard input")
    .option(
      "--field <name=value>",
      "set a field of the request: messages, tools, stream, requestTokens, maxTokens, or another that the policy was trained on; may be repeated (default: counted from the request)",
      addField,
    )
    .option(
      "--candidate <id...>",
      "candidates to choose among (default: those of the route, else of the configuration, else of the checkpoint)",
    )
    .option("--call <id>", "call id; with the configured seed it fixes the random draw")
    .option("--allow-ungated", "also use a configured checkpoint that no gate verdict releases")
    .action(async (words: string | undefined, flags: AskFlags) =>
      ask(io, await askedOf(io, words, flags), flags),
    );
  addCommand(route, "explain", {
    summary: "explain why a recorded call went to its model",
    description: `Explain why a recorded call went to its model: what decided, with which probability, which
candidates were excluded, and which features mattered. Features are shown if the book holds the checkpoint. A failover
is shown as a second decision. A name such as router-1b7c096aeddd is a router: a policy with its static table, floor and
exploration, as it was served.`,
    examples: ["rollbook route explain r-0001.0", "rollbook route explain r-0001.0 --json"],
  })
    .argument(
      "<call>",
      "<rollout>.<number>, as the header x-rollbook-call of the reply says. For a rollout with one call, or a single decision (`POST /v1/route`, an imported row), its id is enough. The id of a decision, <rollout>/<stream>/<step>, names that decision",
    )
    .action(async (call: string, flags: BookFlags & { json?: true }) => {
      const explained = await withBook(io, flags, (book) => explainCall(book, call));
      io.out(flags.json ? jsonLine(explained) : renderExplained(explained));
    });
  addCommand(route, "rollbacks", {
    summary: "list the routers that were taken back, and the evidence",
    description: `List the routers that a gateway took back because their outcomes were worse (\`router.rollback\`), the latest
first: which router, when, which router serves instead, and the evidence. --json prints one line for each rollback.
\`rollbook cat RECORD\` prints the sealed record, which also names every paired difference.`,
    examples: ["rollbook route rollbacks", "rollbook route rollbacks --json"],
  }).action(async (flags: BookFlags & { json?: true }) => {
    const found = await withBook(io, flags, listRollbacks);
    if (flags.json) for (const each of found) io.out(jsonLine(each));
    else if (found.length > 0) io.out(renderRollbacks(found));
    else io.err("the book holds no rollback: no gateway has taken a router back\n");
  });
}

/** Reads the prompt, or the body of a request. */
async function askedOf(io: Io, words: string | undefined, flags: AskFlags): Promise<string | object> {
  const { prompt, request } = flags;
  if (words !== undefined && prompt !== undefined)
    throw wrongUsage("the prompt is given twice, alone and with --prompt. Remove one");
  const text = words ?? prompt;
  if (request !== undefined) {
    if (text !== undefined) throw wrongUsage("--request gives the messages. Remove the prompt");
    const where = request === "-" ? "standard input" : request;
    const read = request === "-" ? await textOf(io.stdin) : readText(request, "a request");
    return requestFrom(parseJson(read.replace(/^\uFEFF/, ""), where), where);
  }
  const last = flags.candidate?.at(-1);
  if (text === undefined && last !== undefined)
    throw wrongUsage(
      `there is no prompt: ${last} was read as a candidate. Put the prompt before --candidate, or after \`--\``,
    );
  if (text === undefined)
    throw wrongUsage(
      "there is no prompt. Give the user's last message, in quotes, or a request with --request",
    );
  return text;
}

function requestFrom(value: unknown, where: string): object {
  // A bare list is the list of messages.
  const body = Array.isArray(value) ? { messages: value } : value;
  const messages = isObject(body) ? body.messages : undefined;
  if (isObject(body) && Array.isArray(messages) && messages.length > 0 && messages.every(isMessage))
    return body;
  throw new RollbookError(
    "bad-request",
    { where },
    `${where} has no list of messages, which are objects with role and content. Give a chat request, such as {"messages":[{"role":"user","content":"hello"}]}.`,
  );
}

/** An assistant message that calls tools may have no content. */
function isMessage(value: unknown): boolean {
  if (!isObject(value) || typeof value.role !== "string") return false;
  return value.role !== "user" || typeof value.content === "string" || Array.isArray(value.content);
}

async function textOf(stream: Io["stdin"]): Promise<string> {
  const chunks: Uint8Array[] = [];
  for await (const chunk of stream) chunks.push(chunk);
  return Buffer.concat(chunks).toString("utf8");
}

async function ask(io: Io, prompt: string | object, flags: AskFlags): Promise<void> {
  const { config, candidates: known, routes } = await configOf(io, flags);
  const { field: fields, candidate: candidates, call } = flags;
  const trusted = trustedKeys(keyringOf(io), () => {});
  const request = {
    ...{ prompt, fields, candidates, known, routes, call, clock: io.clock, env: io.env },
    trusts: (key: PublicKey) => trusted.has(key),
    asksCheckpoint: flags.checkpoint !== undefined,
  };
  const asked = isBook(bookRoot(io, flags))
    ? await withBook(io, flags, (book) => askRouter(config, { ...request, book }))
    : await askRouter(config, request);
  const { missingFields: missing, status } = asked;
  if (missing.length > 0)
    io.err(`warning: ${neverSentWarning(status.policy?.id ?? "the policy", missing)}\n`);
  io.out(flags.json ? jsonLine(asked) : renderAsked(asked));
}

const NO_FILE = { candidates: undefined, routes: undefined };

/** Flags override the environment, and the environment overrides the file. */
async function configOf(io: Io, { config: path, checkpoint, allowUngated }: AskFlags) {
  const env = {
    ...io.env,
    ...(checkpoint === undefined ? {} : { ROLLBOOK_CHECKPOINT: checkpoint, ROLLBOOK_POLICY: "1" }),
    ...(allowUngated === true ? { ROLLBOOK_ALLOW_UNGATED: "1" } : {}),
  };
  return path === undefined
    ? { config: checkRouterConfig({}, { where: "the environment", env }), ...NO_FILE }
    : readRouterFile(readText(path, "the configuration of a router", { code: "no-config" }), path, env);
}

function addField(text: string, fields: AskFlags["field"] = {}): AskFlags["field"] {
  const [, name, value] = /^([^=]+)=(.*)$/s.exec(text) ?? [];
  if (name === undefined || value === undefined)
    throw new InvalidArgumentError("It must be a name and a value, such as tools=2.");
  return { ...fields, [name]: valueFrom(value) };
}

function valueFrom(text: string): string | number | boolean {
  if (text === "true" || text === "false") return text === "true";
  const number = Number(text);
  return text.trim() === "" || !Number.isFinite(number) ? text : number;
}
