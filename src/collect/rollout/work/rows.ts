/** Task rows in common forms: lines of JSON, in slime's form or plain.
 *  In: a parsed row. Out: payload, prompt and label, separately. The payload is the row's metadata and nothing else:
 *  prompt and label never leak into it, and it shares no object with the row. Does not read files. */
import { isObject, type Json, RollbookError } from "../../../base/index.ts";

export type RowForm = "auto" | "slime" | "plain";

interface TaskRow {
  readonly payload: Readonly<Record<string, Json>>;
  readonly prompt?: Json;
  readonly label?: Json;
  /** Description of an unusual property of the row. */
  readonly warning?: string;
}

/** The fields of slime's rows. A row with a prompt and only these fields is in slime's form. */
const SLIME_FIELDS: ReadonlySet<string> = new Set(["prompt", "label", "metadata", "tools"]);

const REGENERATE =
  'Write the row again with the payload in its metadata: {"prompt": …, "metadata": {"prompt": …, "answer": …}}.';

export function readRow(
  row: unknown,
  { form = "auto", where = "row" }: { form?: RowForm; where?: string } = {},
): TaskRow {
  if (!isObject(row)) {
    throw new RollbookError(
      "bad-row",
      { where },
      `${where} is not a JSON object. Write one object a line: {"prompt": …, "metadata": {…}}, or the payload itself.`,
    );
  }
  const fields = row as Record<string, Json>;
  requireNewNames(fields, where);
  const isSlime = form === "slime" || (form === "auto" && looksLikeSlime(row));
  return isSlime ? slimeRow(fields, where) : { payload: copy(fields) };
}

/** Only `rollout_config` configures rollouts. A payload with the old name would reach an agent that ignores it. */
function requireNewNames(row: Record<string, Json>, where: string): void {
  for (const [name, place] of [
    ["", row],
    ["metadata.", row.metadata],
  ] as const)
    if (isObject(place) && Object.hasOwn(place, "_rollout"))
      throw new RollbookError(
        "renamed-field",
        { where, field: `${name}_rollout` },
        `${where}: the field ${name}_rollout has no effect. Remove it: the launcher gives every agent its rollout_config.`,
      );
}

function looksLikeSlime(row: object): boolean {
  if (!Object.hasOwn(row, "prompt")) return false;
  return Object.hasOwn(row, "metadata") || Object.keys(row).every((name) => SLIME_FIELDS.has(name));
}

function slimeRow(row: Record<string, Json>, where: string): TaskRow {
  const { prompt, label, metadata, tools } = row;
  if (metadata !== undefined && metadata !== null && !isObject(metadata))
    throw new RollbookError(
      "bad-row",
      { where, field: "metadata" },
      `${where}: metadata is ${Array.isArray(metadata) ? "an array" : `a ${typeof metadata}`}, not an object. ${REGENERATE}`,
    );
  const payload: Record<string, Json> = isObject(metadata) ? copy(metadata) : {};
  // slime moves a list of tools at the top level of a row into its metadata.
  if (Array.isArray(tools) && !Object.hasOwn(payload, "tools")) payload.tools = copy(tools);
  return {
    payload,
    ...(prompt === undefined ? {} : { prompt: copy(prompt) }),
    ...(label === undefined ? {} : { label: copy(label) }),
    ...(isObject(metadata)
      ? {}
      : {
          warning: `${where}: metadata is ${metadata === undefined ? "missing" : "null"}; the agent gets an empty payload. ${REGENERATE}`,
        }),
  };
}

/** Copies through JSON text, so that no object is shared and a key named `__proto__` stays a key. */
function copy<T extends Json>(value: T): T {
  return JSON.parse(JSON.stringify(value)) as T;
}
