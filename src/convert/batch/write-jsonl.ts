/** A batch as JSON Lines: the provenance first, then one row per line. In: a batch. Out: the file, shard by shard.
 *  Numbers are exact: a reader that parses them as doubles gets the stored values, negative zeros included. */
import type { ReadableBatch, StepBatchRow, TokenBatchRow } from "../../keep/batch/index.ts";
import type { NewFile } from "../new-file.ts";
import { provenanceOf } from "./provenance.ts";

/** Numbers per write, because a row may be longer than the maximum length of a string. */
const NUMBERS_AT_A_TIME = 65_536;

export async function writeJsonl(batch: ReadableBatch, file: NewFile): Promise<void> {
  const write = (text: string) => file.append(Buffer.from(text));
  write(`${provenanceOf(batch)}\n`);
  for await (const row of batch.rows()) {
    write(`{${factsOf(row)}`);
    if (row.level === "token") {
      for (const name of ["ids", "logprobs", "mask", "turns", "rewards", "advantages"] as const) {
        write(`,"${name}":[`);
        const values = row[name];
        for (let at = 0; at < values.length; at += NUMBERS_AT_A_TIME)
          write((at === 0 ? "" : ",") + numbers(values.subarray(at, at + NUMBERS_AT_A_TIME)));
        write("]");
      }
    } else {
      write(',"steps":[');
      for (const [i, step] of row.steps.entries()) write((i === 0 ? "" : ",") + stepJson(step));
      write("]");
    }
    write("}\n");
  }
}

/** The fields of a JSON object, without the braces. */
function factsOf(row: TokenBatchRow | StepBatchRow): string {
  return [
    `"content":${JSON.stringify(row.content)}`,
    `"stream":${row.stream}`,
    `"rollout_id":${JSON.stringify(row.rolloutId)}`,
    `"group":${JSON.stringify(row.group ?? null)}`,
    `"weight_bps":${row.weightBps}`,
    `"samples":${row.samples}`,
    `"reward":${number(row.reward)}`,
    `"segments":${JSON.stringify(
      row.segments.map(({ start, end, revision: { id, digest } }) => ({ start, end, revision: id, digest })),
    )}`,
  ].join();
}

function stepJson(step: StepBatchRow["steps"][number]): string {
  const candidates = step.candidates.map(
    ({ id, probability, selectable }) =>
      `{"id":${JSON.stringify(id)},"probability":${probability === null ? "null" : number(probability)},"selectable":${selectable}}`,
  );
  return `{"chosen":${step.chosen},"probability":${number(step.probability)},"reward":${number(step.reward)},"advantage":${number(step.advantage)},"candidates":[${candidates.join()}]}`;
}

function numbers(values: ArrayLike<number>): string {
  return Array.from(values, number).join();
}

function number(value: number): string {
  return Object.is(value, -0) ? "-0.0" : String(value);
}
