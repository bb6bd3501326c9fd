/** Refuses a field of a question that nothing reads: a typo would change no answer, and nothing would say so.
 *  In: the fields that were given, those of the gateway, the configuration. Reads the checkpoints and the tables. */
import { readFileSync } from "node:fs";
import { nearestName, RollbookError } from "../../base/index.ts";
import { baselineOf } from "../../learn/index.ts";
import { type DecisionContext, readCheckpoint, readYaml } from "../../policy/index.ts";
import type { RouterConfig } from "../../serve/index.ts";

type AskedFields = DecisionContext["fields"];

export function requireKnownFields(given: AskedFields, own: AskedFields, config: RouterConfig): void {
  const read = fieldsReadBy(config);
  if (read === undefined) return;
  const known = [...new Set([...Object.keys(own), "maxTokens", ...read])];
  const unknown = Object.keys(given).find((name) => !known.includes(name));
  if (unknown === undefined) return;
  const meant = nearestName(unknown, known);
  throw new RollbookError(
    "unknown-field",
    { field: unknown, known },
    `--field ${unknown} has no effect: neither the gateway, the policy nor the table has a field of this name. ${meant === undefined ? "" : `Did you mean ${meant}? `}Known: ${known.join(", ")}.`,
  );
}

/** Undefined: not known, as for a policy of which only the router knows that it is released. */
function fieldsReadBy({ checkpoint, table, shadow }: RouterConfig): string[] | undefined {
  if (checkpoint === "released") return undefined;
  try {
    return [
      ...[table, shadow?.table].flatMap(fieldsOfTable),
      ...[checkpoint, shadow?.checkpoint].flatMap(fieldsOfPolicy),
    ];
  } catch {
    // The router says itself what it cannot read, and answers without it.
    return undefined;
  }
}

function fieldsOfPolicy(checkpoint: string | undefined): string[] {
  if (checkpoint === undefined) return [];
  const { model } = readCheckpoint(checkpoint);
  return [...model.spec.fields.map(({ name }) => name), ...fieldsOfRules(baselineOf(model)?.source)];
}

function fieldsOfTable(table: RouterConfig["table"]): string[] {
  if (typeof table !== "string") return fieldsOfRules(table);
  return fieldsOfRules(readYaml(readFileSync(table, "utf8"), (what) => new Error(what)));
}

function fieldsOfRules(table: unknown): string[] {
  const { rules = [] } = (table ?? {}) as { rules?: readonly { when: { fields?: object } }[] };
  return rules.flatMap(({ when }) => Object.keys(when.fields ?? {}));
}
