/** Record kinds as JSON Schema 2020-12, in wire form (u64 as decimal strings), for readers in other languages.
 *  It says shapes, patterns and bounds; digests, canonical form and the rules between fields are checked by code only. */
import * as z from "zod";
import type { RecordType } from "./codec/index.ts";
import { RECORD_TYPES } from "./records.ts";
import { ROUTING_ROW, RolloutDraft } from "./rollout/index.ts";

/** Every record kind, and the exchange form of a rollout, which is read and written but never stored. */
export const EXCHANGE_TYPES: readonly RecordType[] = [RolloutDraft as unknown as RecordType, ...RECORD_TYPES];

/** What `schemas/` describes: those, and the line of a routing dataset. */
export const SCHEMA_FORMS: readonly Pick<RecordType, "kind" | "summary" | "schema">[] = [
  ...EXCHANGE_TYPES,
  ROUTING_ROW,
];

export function jsonSchemaOf({
  kind,
  summary,
  schema,
}: (typeof SCHEMA_FORMS)[number]): Record<string, unknown> {
  const { $schema, ...rest } = z.toJSONSchema(schema, {
    target: "draft-2020-12",
    io: "input",
    override({ jsonSchema }) {
      // zod repeats a definition's name inside it, under a keyword that JSON Schema does not know.
      delete jsonSchema.id;
    },
  });
  return { $schema, $id: kind, title: kind, description: summary, ...rest };
}

/** The files of `schemas/`: name and text. */
export function schemaFiles(): Map<string, string> {
  return new Map(
    SCHEMA_FORMS.map((type) => [`${type.kind}.json`, `${JSON.stringify(jsonSchemaOf(type), null, 2)}\n`]),
  );
}
