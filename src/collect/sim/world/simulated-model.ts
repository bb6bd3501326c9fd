/** A simulated model at work: reads a conversation, returns its next actions.
 *  In: declaration, task, conversation, seed. Out: a reply and its usage. Pure: every draw follows from (model, task
 *  digest, seed, turn), so neither the order nor the number of other requests matters. It hands in real solutions: the
 *  reference or a mutant, never a verdict.
 *
 *  Each attempt takes the reference with probability `skill` (after failed visible tests: `repair`), else a random
 *  mutant. If the visible tests pass, the model submits. If they fail, it tries again up to `patience` attempts, then
 *  submits. */
import { hash } from "node:crypto";
import {
  type Message,
  type Protocol,
  type SimTask,
  type SourceFiles,
  type ToolCall,
  textOfAction,
} from "../tasks/index.ts";
import { type SimModel, skillOf } from "./models.ts";

interface ModelRequest {
  readonly messages: readonly Message[];
  readonly protocol: Protocol;
  readonly seed: number;
}

interface ModelReply {
  readonly message: Message & { readonly role: "assistant" };
  readonly promptTokens: number;
  readonly completionTokens: number;
}

/** First lines of observations. A simulated model reads, and is billed for, only these lines. */
export const TESTS_PASSED = "visible tests passed";
export const TESTS_FAILED = "visible tests failed";

export function replyTo(task: SimTask, model: SimModel, request: ModelRequest): ModelReply {
  const { messages, protocol, seed } = request;
  const message = messageOf(stepsNow(task, model, { messages, seed }), protocol, messages.length);
  const promptTokens = promptTokensOf(messages);
  return { message, promptTokens, completionTokens: tokensOfMessage(message) };
}

/** The possible attempts: the reference first, then the mutants. Without mutants, the start is the wrong attempt. */
export function possibleAttempts({ solutions, visible }: SimTask): readonly SourceFiles[] {
  const wrong = solutions.mutants.map(({ files }) => files);
  return [solutions.reference, ...(wrong.length > 0 ? wrong : [startOf(visible)])];
}

/** Index of the candidate for a draw: the first with probability `right`, the others with equal probability. */
export function pickCandidate(draw: number, right: number, count: number): number {
  if (draw < right) return 0;
  return 1 + Math.min(count - 2, Math.floor(((draw - right) / (1 - right)) * (count - 1)));
}

/** Uniform in [0, 1), from 53 bits of a digest. */
export function drawOf(at: { model: string; task: string; seed: number; turn: number }): number {
  const word = hash(
    "sha256",
    `rollbook.sim-draw.v1\n${at.model}\n${at.task}\n${at.seed}\n${at.turn}`,
    "buffer",
  );
  return (word.readUInt32LE(0) * 2 ** 21 + (word.readUInt32LE(4) >>> 11)) / 2 ** 53;
}

/** Counts one token per four characters. */
export function tokensOfText(chars: number): number {
  return Math.ceil(chars / 4);
}

export function tokensOfMessage({ content, tool_calls = [] }: Message): number {
  const called = tool_calls.reduce((sum, { function: f }) => sum + f.name.length + f.arguments.length, 0);
  return tokensOfText((content?.length ?? 0) + called);
}

/** Counts everything up to the task, the model's own messages, and the first line of every observation. */
export function promptTokensOf(messages: readonly Message[]): number {
  const opening = messages.findIndex(({ role }) => role === "user");
  return messages.reduce((sum, message, i) => {
    const isObservation = i > opening && (message.role === "tool" || message.role === "user");
    return sum + (isObservation ? tokensOfText(firstLine(message).length) : tokensOfMessage(message));
  }, 0);
}

/** One action: the name of a tool and its arguments. */
export interface ModelStep {
  readonly tool: string;
  readonly given: { readonly path?: string; readonly content?: string };
}

/** The steps of a whole attempt. */
export function attemptSteps(files: SourceFiles): ModelStep[] {
  const writes = Object.keys(files).map((path) => ({
    tool: "write_file",
    given: { path, content: files[path]! },
  }));
  return [...writes, { tool: "run_tests", given: {} }];
}

export function lookSteps({ visible }: SimTask): ModelStep[] {
  return visible.editable
    .filter((path) => Object.hasOwn(visible.files, path))
    .map((path) => ({ tool: "read_file", given: { path } }));
}

export const SUBMIT: readonly ModelStep[] = [{ tool: "submit", given: {} }];

/** True if the model spends a call on reading: its declaration says so, and there are files to read. */
export function looksFirst(task: SimTask, model: SimModel): boolean {
  return model.looks && lookSteps(task).length > 0;
}

export function messageOf(
  steps: readonly ModelStep[],
  protocol: Protocol,
  place: number,
): Message & { role: "assistant" } {
  if (protocol === "text")
    return {
      role: "assistant",
      content: steps.map(({ tool, given }) => textOfAction(tool, given)).join("\n"),
    };
  const calls = steps.map(
    ({ tool, given }, i): ToolCall => ({
      id: `call_${place}_${i}`,
      type: "function",
      function: { name: tool, arguments: JSON.stringify(given) },
    }),
  );
  return { role: "assistant", content: null, tool_calls: calls };
}

function stepsNow(
  task: SimTask,
  model: SimModel,
  { messages, seed }: Pick<ModelRequest, "messages" | "seed">,
): readonly ModelStep[] {
  const own = messages.filter(({ role }) => role === "assistant");
  const turn = own.length;
  if (turn === 0 && looksFirst(task, model)) return lookSteps(task);
  const attempts = own.filter(wrote).length;
  if (attempts > 0 && (lastVerdict(messages) !== TESTS_FAILED || attempts >= model.patience)) return SUBMIT;
  const right = attempts === 0 ? skillOf(model, task.oracle) : model.repair;
  const candidates = possibleAttempts(task);
  const draw = drawOf({ model: model.name, task: task.digest, seed, turn });
  return attemptSteps(candidates[pickCandidate(draw, right, candidates.length)]!);
}

function wrote({ content, tool_calls = [] }: Message): boolean {
  return (
    tool_calls.some((call) => call.function.name === "write_file") ||
    (content?.includes("ACTION write_file ") ?? false)
  );
}

/** The verdict of the last test run. Undefined if no tests ran. */
function lastVerdict(messages: readonly Message[]): string | undefined {
  for (const message of messages.toReversed()) {
    if (message.role === "assistant") continue;
    for (const line of (message.content ?? "").split("\n"))
      if (line === TESTS_PASSED || line === TESTS_FAILED) return line;
  }
  return undefined;
}

function firstLine({ content }: Message): string {
  const text = content ?? "";
  const end = text.indexOf("\n");
  return end < 0 ? text : text.slice(0, end);
}

function startOf({ editable, files }: SimTask["visible"]): SourceFiles {
  return Object.fromEntries(editable.map((path) => [path, files[path] ?? ""]));
}
