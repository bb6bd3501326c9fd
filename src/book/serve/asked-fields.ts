/** Refuses a field of a question that nothing reads: a typo would change no answer, and nothing would say so.
 *  In: the fields that were given, those of the gateway, the configuration. Reads the checkpoint and the table. */
import { existsSync, readFileSync } from "node:fs";
import { nearestName, RollbookError } from "../../base/index.ts";
import { type DecisionContext, readCheckpoint } from "../../policy/index.ts";
import type { RouterConfig } from "../../serve/index.ts";

type AskedFields = DecisionContext["fields"];

export function requireKnownFields(given: AskedFields, own: AskedFields, config: RouterConfig): void {
  const { checkpoint, table } = config;
  // Which policy is released is known only to the router.
  if (checkpoint === "released") return;
  const model = checkpoint === undefined ? undefined : readCheckpoint(checkpoint).model;
  const spec = (model?.spec as { fields?: readonly { name: string }[] } | undefined)?.fields ?? [];
  const known = [...new Set([...Object.keys(own), "maxTokens", ...spec.map(({ name }) => name)])];
  const tables = [textOf(table), JSON.stringify(model?.config.baseline ?? "")];
  const isRead = (name: string) => known.includes(name) || tables.some((text) => text.includes(name));
  const unknown = Object.keys(given).find((name) => !isRead(name));
  if (unknown === undefined) return;
  const meant = nearestName(unknown, known);
  throw new RollbookError(
    "unknown-field",
    { field: unknown, known },
    `--field ${unknown} has no effect: neither the gateway, the policy nor the table has a field of this name. ${meant === undefined ? "" : `Did you mean ${meant}? `}Known: ${known.join(", ")}.`,
  );
}

function textOf(table: RouterConfig["table"]): string {
  if (typeof table !== "string") return JSON.stringify(table ?? "");
  return existsSync(table) ? readFileSync(table, "utf8") : "";
}
