/** The table of docs/reference/interop.md: for each format its file, directions, rules and losses. Formats, directions and
 *  losses come from the code.
 *  The meaning of a row and the checks are written here. */
import {
  TRACE_FORMATS,
  TRAINER_FORMATS,
  type TrainerFormatName,
  trainerFormat,
} from "../../src/convert/formats/index.ts";
import { ROLLOUT_PARTS, type RolloutPart } from "../../src/convert/handover/index.ts";
import { READERS, TORCH } from "../interop/readers.ts";
import { markdownTable } from "./markdown-table.ts";

interface FormatFacts {
  readonly row: string;
  readonly checked: string;
  /** Whole rollouts that are left out, beside lost parts of a rollout. */
  readonly leftOut?: string;
}

const TOKENS = "sampling log-probabilities; one tokenizer";
const CONVERSATION = "the conversation ends with a reply; tool arguments are objects";
const FAILURES = "failures of others";

const FACTS: Readonly<Record<TrainerFormatName, FormatFacts>> = {
  slime: {
    row: "one stream of a batch",
    checked: `${TOKENS}; mask and log-probabilities as long as the response, 0 where masked; groups of one size, each with a result`,
  },
  "slime-prompts": {
    row: "one task",
    checked: "a prompt; metadata is an object",
  },
  verl: {
    row: "one task",
    checked: "a prompt of messages",
  },
  "verl-agent-loop": {
    row: "one stream of a batch",
    checked: `${TOKENS}; a prompt that is not empty; ids, mask and log-probabilities of one length`,
    leftOut: FAILURES,
  },
  "trl-sft": {
    row: "one conversation",
    checked: CONVERSATION,
    leftOut: FAILURES,
  },
  "trl-dpo": {
    row: "best and worst of one prompt",
    checked: `${CONVERSATION}; two rewards that differ`,
    leftOut: `${FAILURES}, unlabelled rollouts`,
  },
  "trl-kto": {
    row: "one conversation",
    checked: `${CONVERSATION}; \`--threshold\` makes the label`,
    leftOut: `${FAILURES}, unlabelled rollouts`,
  },
  "trl-grpo": {
    row: "one task",
    checked: "a prompt that a chat template renders",
  },
  "trl-rollouts": {
    row: "one stream of a batch",
    checked: `${TOKENS}; the same advantage for all tokens of a rollout; arrays as long as the ids`,
    leftOut: FAILURES,
  },
  art: {
    row: "one rollout",
    checked: "a reward and a conversation",
    leftOut: `${FAILURES}, unlabelled rollouts`,
  },
  verifiers: {
    row: "one rollout",
    checked:
      "nodes from root to leaf give the exact tokens; one log-probability for each sampled token; [converted back](#traces), the trace gives the same digest",
  },
  atif: {
    row: "one rollout",
    checked:
      "step ids from 1; results name a call of their step; log-probabilities as long as the completion; [converted back](#traces), the trace gives the same digest",
    leftOut: "rollouts without a reply",
  },
};

export async function interopTable(): Promise<string> {
  const rows = await Promise.all(TRAINER_FORMATS.map(rowOf));
  const head = ["format", "file", "direction", "one row is", "checked before writing", "cannot carry"];
  return markdownTable([head, ...rows]).join("\n");
}

/** The page with the correct table: the table whose first column is `format`. */
export async function interopPage(page: string): Promise<string> {
  const lines = page.split("\n");
  const from = lines.findIndex((line) => line.startsWith("| format "));
  const to = lines.findIndex((line, i) => i > from && line === "");
  return [...lines.slice(0, from), await interopTable(), ...lines.slice(to)].join("\n");
}

/** The pinned version of a package that a reader installs. */
export function pinned(reader: string, name: string): string {
  const { packages, alone = [], torch } = READERS[reader]!;
  const pins = [...packages, ...alone, ...(torch === true ? TORCH : [])];
  return pins.find((pin) => pin.startsWith(`${name}==`))!.split("==")[1]!;
}

async function rowOf(name: TrainerFormatName): Promise<string[]> {
  const { row, checked, leftOut } = FACTS[name];
  const { columns, carried } = await trainerFormat(name);
  const both = (TRACE_FORMATS as readonly string[]).includes(name);
  return [
    ...[`\`${name}\``, columns === undefined ? "JSON Lines" : "Parquet", both ? "both" : "out", row, checked],
    [...lostParts(carried), ...(leftOut === undefined ? [] : [leftOut])].join(", "),
  ];
}

/** Lost parts in the words of the command. A family of parts that is lost as a whole is named once. */
function lostParts(carried: readonly RolloutPart[]): string[] {
  const lost = ROLLOUT_PARTS.filter((part) => !carried.includes(part));
  const familyOf = (part: string) => part.split(".")[0]!;
  const isWhole = (family: string) =>
    ROLLOUT_PARTS.filter((part) => familyOf(part) === family).every((part) => lost.includes(part));
  return [
    ...new Set(
      lost.map((part) =>
        part.includes(".") && isWhole(familyOf(part)) ? `\`${familyOf(part)}.*\`` : `\`${part}\``,
      ),
    ),
  ];
}
