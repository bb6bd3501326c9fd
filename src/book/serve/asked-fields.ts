/** Refuses a field of a question that neither policy nor table reads, and a value of another kind than the field has:
 *  a typo would have no effect, without a warning.
 *  In: the given fields, the fields of the gateway, the configuration. Reads the checkpoints and the tables. */
import { readFileSync } from "node:fs";
import { nearestName, RollbookError } from "../../base/index.ts";
import { baselineOf } from "../../learn/index.ts";
import { type DecisionContext, type PolicyModel, readYaml } from "../../policy/index.ts";
import { type RouterConfig, readConfigured } from "../../serve/index.ts";

type AskedFields = DecisionContext["fields"];

export function requireKnownFields(
  given: AskedFields,
  own: AskedFields,
  { config, served }: { config: RouterConfig; served: PolicyModel | undefined },
): void {
  const read = fieldsReadBy(config, served);
  requireKinds(given, {
    ...Object.fromEntries(read?.numbers.map((name) => [name, 2]) ?? []),
    maxTokens: 100,
    ...own,
  });
  if (read === undefined) return;
  const known = [...new Set([...Object.keys(own), "maxTokens", ...read.names])];
  const unknown = Object.keys(given).find((name) => !known.includes(name));
  if (unknown === undefined) return;
  const meant = nearestName(unknown, known);
  throw new RollbookError(
    "unknown-field",
    { field: unknown, known },
    `--field ${unknown} has no effect: neither the gateway, the policy nor the table has a field of this name. ${meant === undefined ? "" : `Did you mean ${meant}? `}Known: ${known.join(", ")}.`,
  );
}

/** `samples`: a value of every field that takes only one kind of value. */
function requireKinds(given: AskedFields, samples: AskedFields): void {
  for (const [field, value] of Object.entries(given)) {
    const sample = samples[field];
    if (sample === undefined || typeof sample === typeof value) continue;
    const isNumber = typeof sample === "number";
    throw new RollbookError(
      "bad-field",
      { field, value },
      `--field ${field}=${value}: ${field} is ${isNumber ? "a number" : "true or false"}. Give ${isNumber ? "a number, such as" : "one of them, such as"} ${field}=${sample}.`,
    );
  }
}

interface ReadFields {
  readonly names: readonly string[];
  /** Fields that the policy reads as numbers. */
  readonly numbers: readonly string[];
}

/** Fields that policy and tables read. Undefined if unknown: a released policy is known only if it serves. */
function fieldsReadBy(
  { checkpoint, table, shadow }: RouterConfig,
  served: PolicyModel | undefined,
): ReadFields | undefined {
  const isReleased = checkpoint === "released";
  if (isReleased && served === undefined) return undefined;
  try {
    const main = isReleased ? served : modelIn(checkpoint);
    const models = [main, modelIn(shadow?.checkpoint)].filter((each) => each !== undefined);
    const tables = [table, shadow?.table].flatMap(fieldsOfTable);
    return {
      names: [...tables, ...models.flatMap(fieldsOfModel)],
      numbers: main?.spec.fields.filter(({ kind }) => kind === "number").map(({ name }) => name) ?? [],
    };
  } catch {
    // The router itself reports a file that it cannot read, and answers without it.
    return undefined;
  }
}

function modelIn(checkpoint: string | undefined): PolicyModel | undefined {
  return checkpoint === undefined ? undefined : readConfigured(checkpoint).model;
}

function fieldsOfModel(model: PolicyModel): string[] {
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
