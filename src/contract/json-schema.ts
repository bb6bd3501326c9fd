/** Record kinds as JSON Schema 2020-12, in wire form (u64 as decimal strings), for readers in other languages. The
 *  schemas give shapes, patterns and bounds. Only code checks digests, canonical form and rules between fields. */
import * as z from "zod";
import type { RecordType } from "./codec/index.ts";
import { RECORD_TYPES } from "./records.ts";
import { ROUTING_ROW, RolloutDraft } from "./rollout/index.ts";

/** All record kinds, and the exchange form of a rollout, which is read and written but never stored. */
export const EXCHANGE_TYPES: readonly RecordType[] = [RolloutDraft as unknown as RecordType, ...RECORD_TYPES];

/** Forms described in `schemas/`: the exchange types, and the line of a routing dataset. */
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
      // zod repeats the name of a definition inside it, under a keyword that JSON Schema does not know.
      delete jsonSchema.id;
    },
  });
  return { $schema, $id: kind, title: kind, description: summary, ...rest };
}

/** Files of `schemas/`: name and text. */
export function schemaFiles(): Map<string, string> {
  return new Map(
    SCHEMA_FORMS.map((type) => [`${type.kind}.json`, `${JSON.stringify(jsonSchemaOf(type), null, 2)}\n`]),
  );
}
