/** The description of a file of recorded answers: the meaning of its columns, and the prices of models. In: YAML. Out:
 *  the checked description. Unknown fields are refused. Reads no file. */
import * as z from "zod";
import { RollbookError, withRemedy } from "../../../base/index.ts";
import { readDeclaration } from "../world/index.ts";

const column = z.string().min(1);
const amount = z.number().min(0);

const schema = z.strictObject({
  schema: z.literal("rollbook.recorded.v1"),
  /** Path relative to this file: .csv with a header, or .jsonl with one object per line. */
  file: z.string().min(1),
  prompt: column,
  models: z
    .array(
      z.strictObject({
        name: z.string().regex(/^[A-Za-z0-9_][A-Za-z0-9_.:+/-]{0,255}$/, "is not a name"),
        response: column,
        correct: column,
        price: z.strictObject({ prompt: amount, completion: amount }),
      }),
    )
    .min(1)
    .max(64),
  /** Weight and scale of dollars in the reward. */
  cost: z
    .strictObject({ weight: z.number().min(0), perUsd: z.number().gt(0) })
    .default({ weight: 0.3, perUsd: 0.01 }),
  /** Prompts to leave out: a JSON Lines file, and its field with the prompts. */
  drop: z.optional(z.strictObject({ file: z.string().min(1), field: column })),
});
export type RecordedFile = z.output<typeof schema>;

export function parseRecording(text: string, where: string): RecordedFile {
  return readDeclaration(text, schema, (what) => badRecording(where, what));
}

export function badRecording(where: string, what: string): RollbookError {
  return new RollbookError(
    "bad-recorded",
    { where },
    `${where}: ${withRemedy(what, "Correct it; docs/reference/simulator.md lists what the description may hold.")}`,
  );
}
