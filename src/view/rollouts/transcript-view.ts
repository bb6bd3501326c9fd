/** Renders a rollout for a person: the conversation, its cost and its ending.
 *  In: a transcript. Out: text without terminal control characters, except our own colours. */
import type {
  Transcript,
  TranscriptCall,
  TranscriptChoice,
  TranscriptTurn,
} from "../../book/rollouts/index.ts";
import type { ChatPart } from "../../convert/chat/index.ts";
import {
  figure,
  indent,
  type Paint,
  paint,
  plural,
  printable,
  short,
  table,
  textLines,
  thousands,
  timeText,
} from "../format.ts";
import { endingText } from "./artifact-view.ts";
import { choiceText } from "./choice-text.ts";

/** Longer text is cut on a terminal; `rollbook cat` prints all of it. */
const MOST_CHARACTERS = 20_000;

export function renderTranscript(
  transcript: Transcript,
  { color = false }: { color?: boolean } = {},
): string {
  const ink = paint(color);
  const { calls, choices } = transcript;
  const chosen = choices.map((choice) => choiceLine(choice, ink));
  const said = calls.map((call, i) => callLines(call, { before: calls[i - 1], ink }));
  const blocks = [headLines(transcript, ink), chosen, ...said, endLines(transcript, ink)];
  return blocks
    .filter((lines) => lines.length > 0)
    .map((lines) => `${lines.join("\n")}\n`)
    .join("\n");
}

export function renderCalls(calls: readonly TranscriptCall[]): string {
  return table(calls, [
    { title: "CALL", align: "right", cell: ({ index }) => String(index) },
    { title: "MODEL", cell: ({ model }) => model },
    { title: "STATUS", align: "right", cell: ({ status }) => String(status ?? "-") },
    { title: "FINISH", cell: ({ finishReason }) => finishReason ?? "-" },
    { title: "PROMPT", align: "right", cell: ({ usage }) => count(usage?.promptTokens) },
    { title: "COMPLETION", align: "right", cell: ({ usage }) => count(usage?.completionTokens) },
    {
      title: "COST",
      align: "right",
      cell: ({ costUsd }) => (costUsd === undefined ? "-" : dollars(costUsd)),
    },
    { title: "FIRST BYTE", align: "right", cell: ({ firstByteMs }) => optionalDuration(firstByteMs) },
    { title: "DURATION", align: "right", cell: ({ durationMs }) => optionalDuration(durationMs) },
    { title: "DELIVERY", cell: ({ delivery }) => delivery ?? "-" },
    { title: "RECORD", cell: ({ digest }) => short(digest) },
  ]);
}

export function durationText(ms: number): string {
  if (ms < 1000) return `${Math.round(ms)} ms`;
  return ms < 60_000 ? `${figure(Math.round(ms / 10) / 100)} s` : `${figure(Math.round(ms / 600) / 100)} min`;
}

function headLines(transcript: Transcript, ink: Paint): string[] {
  const { rolloutId, task, environment, group, experiment, dataSource, ending, totals } = transcript;
  const models = [...new Set(transcript.calls.map(({ model }) => model))];
  const [end = ""] = textLines(endingText(ending));
  const done = ending.kind === "terminal" ? ink.green(ending.kind) : ink.red(end);
  const place = [
    `environment ${environment}`,
    group === null ? "" : `group ${group}`,
    experiment === null ? "" : `experiment ${experiment}`,
    `${dataSource} data`,
  ];
  return [
    `${ink.bold(printable(`rollout ${rolloutId}`))}  ${done}  ${rewardText(transcript)}`,
    `  task         ${printable(task.id)}${taskText(task.prompt ?? task.payload)}`,
    `  where        ${printable(place.filter((each) => each !== "").join(", "))}`,
    `  time         ${spanText(transcript)}`,
    `  calls        ${[plural(totals.calls, "call"), ...(models.length === 0 ? [] : [printable(models.join(", "))]), ...costs(totals), ...(totals.callMs === null ? [] : [`model calls ${durationText(totals.callMs)}`])].join(" · ")}`,
  ];
}

/** A start of 0 means that the rollout was imported without a time. */
function spanText({ startedAtMs, endedAtMs }: Transcript): string {
  if (startedAtMs === 0) return "-";
  return `${timeText(startedAtMs)} UTC, took ${durationText(endedAtMs - startedAtMs)}`;
}

/** Feedback replaces a reward in batches that name it. */
function rewardText({ reward, feedback }: Transcript): string {
  if (reward !== null) return `reward ${figure(reward)}`;
  if (feedback.length === 0) return "no scores";
  return `no reward, feedback ${printable(feedback.map(({ name, value }) => `${name} ${figure(value)}`).join(", "))}`;
}

function taskText(prompt: unknown): string {
  if (prompt === undefined) return "";
  const text = typeof prompt === "string" ? prompt : JSON.stringify(prompt);
  const [line = ""] = textLines(text);
  return `: ${line.length > 100 ? `${line.slice(0, 99)}…` : line}`;
}

function callLines(
  call: TranscriptCall,
  { before, ink }: { before: TranscriptCall | undefined; ink: Paint },
): string[] {
  const { usage, finishReason, status, delivery } = call;
  const facts = [
    printable(call.model),
    ...costs({ ...usage, costUsd: call.costUsd, durationMs: call.durationMs }),
    ...(call.firstByteMs === undefined ? [] : [`first byte ${durationText(call.firstByteMs)}`]),
    ...(finishReason === undefined ? [] : [printable(finishReason)]),
    ...(status === undefined || status < 400 ? [] : [ink.red(`status ${status}`)]),
    ...(delivery === undefined || delivery === "sent" ? [] : [ink.red(`delivery ${delivery}`)]),
    ...continuation(call),
  ];
  return [
    ink.cyan(`── call ${call.index} · `) + facts.join(" · "),
    ...call.choices.map((choice) => `   ${choiceLine(choice, ink)}`),
    ...toolsLine(call, before).map((line) => `   ${ink.dim(line)}`),
    ...call.turns.flatMap((turn) => turnLines(turn, ink)),
  ];
}

/** Tools are sent again with every turn, so they are printed only if they change. */
function toolsLine({ tools, toolNames }: TranscriptCall, before: TranscriptCall | undefined): string[] {
  if (tools === before?.tools) return [];
  return [`tools offered: ${toolNames.length === 0 ? "none" : printable(toolNames.join(", "))}`];
}

/** Printed only if the call does not continue the previous one. */
function continuation({ index, continues }: TranscriptCall): string[] {
  if (index === 0) return [];
  if (continues === null) return ["a new conversation"];
  const { call, messages, of } = continues;
  return call === index - 1 && messages === of ? [] : [`goes on from call ${call}, message ${messages}`];
}

function choiceLine(choice: TranscriptChoice, ink: Paint): string {
  return ink.dim(printable(choiceText(choice)));
}

function turnLines({ role, parts, message }: TranscriptTurn, ink: Paint): string[] {
  const title =
    role === "assistant" ? ink.green(role) : role === "tool" ? ink.yellow(role) : ink.bold(printable(role));
  const lines =
    parts.length === 0 ? [ink.dim("(empty)")] : parts.flatMap((part) => partLines(part, { message, ink }));
  return [title, ...lines.map((line) => `  ${line}`)];
}

function partLines(
  part: ChatPart,
  { message, ink }: { message: TranscriptTurn["message"]; ink: Paint },
): string[] {
  const cut = (text: string) => cutLines(text, { message, ink });
  switch (part.kind) {
    case "text":
      return cut(part.text);
    case "thinking":
      return cut(`(thinks) ${part.text}`).map((line) => ink.dim(line));
    case "tool-call":
      return cut(`${part.name}(${part.arguments})`).map((line, i) => (i === 0 ? `→ ${line}` : `  ${line}`));
    case "tool-result":
      return cut(part.text).map((line, i) =>
        i === 0 ? `← ${part.failed ? ink.red("failed: ") : ""}${line}` : `  ${line}`,
      );
    case "media":
      return [ink.dim(printable(`[${part.type} ${part.source}]`))];
    case "other":
      return cut(part.json);
    default:
      return part satisfies never;
  }
}

function cutLines(
  text: string,
  { message, ink }: { message: TranscriptTurn["message"]; ink: Paint },
): string[] {
  if (text.length <= MOST_CHARACTERS) return textLines(text);
  const left = text.length - MOST_CHARACTERS;
  return [
    ...textLines(text.slice(0, MOST_CHARACTERS)),
    ink.dim(`… ${thousands(left)} characters more: rollbook cat ${short(message)}`),
  ];
}

/** Output of a program before it failed; the first line of the message is printed above. */
function outputLines({ ending }: Transcript, ink: Paint): string[] {
  const [, ...lines] = ending.kind === "failed" ? textLines(ending.message) : [];
  return lines.length === 0 ? [] : [ink.bold("output"), ...lines.map((line) => `  ${line}`)];
}

function endLines(transcript: Transcript, ink: Paint): string[] {
  const { scores, feedback, task, finalState } = transcript;
  const json = (value: unknown) => {
    const text = typeof value === "string" ? value : JSON.stringify(value);
    return printable(text.length > 400 ? `${text.slice(0, 399)}…` : text);
  };
  return [
    ...scores.map(
      ({ name, value, weight }) =>
        `${ink.bold("score")}        ${printable(name)} ${figure(value)} ${weight === 0 ? "(not part of the reward)" : `× ${figure(weight)}`}`,
    ),
    ...feedback.map(
      ({ name, value, source, call }) =>
        `${ink.bold("feedback")}     ${printable(`${name} ${figure(value)} from ${source}${call === undefined ? "" : `, call ${call}`}`)}`,
    ),
    ...(task.label === undefined ? [] : [`${ink.bold("label")}        ${json(task.label)}`]),
    ...(finalState === undefined ? [] : [`${ink.bold("final state")}  ${json(finalState)}`]),
    ...outputLines(transcript, ink),
  ].map((line) => indent(line, 2));
}

function costs(of: {
  promptTokens?: number | null | undefined;
  completionTokens?: number | null | undefined;
  costUsd?: number | null | undefined;
  durationMs?: number | null | undefined;
}): string[] {
  const { promptTokens, completionTokens, costUsd, durationMs } = of;
  return [
    ...(promptTokens == null && completionTokens == null
      ? []
      : [`${count(promptTokens)} + ${count(completionTokens)} tokens`]),
    ...(costUsd == null ? [] : [dollars(costUsd)]),
    ...(durationMs == null ? [] : [durationText(durationMs)]),
  ];
}

function dollars(usd: number): string {
  return `$${figure(usd)}`;
}

function count(value: number | null | undefined): string {
  return value == null ? "-" : thousands(value);
}

function optionalDuration(ms: number | undefined): string {
  return ms === undefined ? "-" : durationText(ms);
}
