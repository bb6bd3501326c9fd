/** Implements `rollbook schema`: prints the JSON Schema of every record kind. */
import type { Command } from "commander";
import { nearestName } from "../../base/index.ts";
import { wrongUsage } from "../../book/decisions/index.ts";
import { jsonSchemaOf, SCHEMA_FORMS } from "../../contract/index.ts";
import { jsonLine, table } from "../../view/format.ts";
import { addCommand } from "../command.ts";
import type { Io } from "../io.ts";

export function addSchema(program: Command, io: Io): void {
  addCommand(program, "schema", {
    summary: "print the JSON Schema of a record kind, or list the kinds",
    examples: ["rollbook schema", "rollbook schema rollbook.rollout.v1 > rollout.schema.json"],
    book: false,
  })
    .argument("[kind]", "a kind such as rollbook.rollout.v1, or its middle: rollout")
    .action((name: string | undefined, flags: { json?: true }) => {
      if (name !== undefined) {
        const schema = jsonSchemaOf(typeNamed(name));
        io.out(flags.json ? jsonLine(schema) : `${JSON.stringify(schema, null, 2)}\n`);
      } else if (flags.json)
        for (const { kind, summary } of SCHEMA_FORMS) io.out(jsonLine({ kind, summary }));
      else
        io.out(
          table(SCHEMA_FORMS, [
            { title: "KIND", cell: ({ kind }) => kind },
            { title: "WHAT IT IS", cell: ({ summary }) => summary },
          ]),
        );
    });
}

function typeNamed(name: string) {
  const middleOf = (kind: string) => kind.replace(/^rollbook\.|\.v\d+$/g, "");
  const found = SCHEMA_FORMS.find(({ kind }) => kind === name || middleOf(kind) === name);
  if (found !== undefined) return found;
  const nearest = nearestName(
    name,
    SCHEMA_FORMS.flatMap(({ kind }) => [middleOf(kind), kind]),
  );
  throw wrongUsage(
    `there is no record kind ${JSON.stringify(name)}.${nearest === undefined ? "" : ` Did you mean ${nearest}?`} \`rollbook schema\` lists them`,
  );
}
