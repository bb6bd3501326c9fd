/** The identity of an imported row without an id in its file: its content, never the name of the file or a line number.
 *  The same rows have the same ids in every file and form, so a policy is not evaluated on rows that it was trained on.
 *  A counter distinguishes equal rows of one file. Memory: 24 bytes for each row. */
import { digestJson } from "../base/index.ts";
import type { DecisionContext } from "../policy/index.ts";
import { IdTable } from "./id-table.ts";

/** Digits of a digest in an id: 128 bits. */
const HEX_DIGITS = 32;

/** The identities of the rows of one file, in the order of the file. */
export class RowIdentities {
  readonly #seen = new IdTable();

  /** Names a row by its content. The second of two equal rows ends in `:2`. */
  nameOf(tag: string, content: unknown): string {
    return this.numbered(contentDigest(tag, content));
  }

  /** Names a step of an episode so that ids sort by step. Without a step, they sort by the order of the rows. */
  nameOfStep(content: unknown, { episode, step }: { episode: string; step: number | undefined }): string {
    const at = step ?? this.#seen.count(`episode ${episode}`) - 1;
    return this.numbered(
      `${episode}:${String(at).padStart(9, "0")}-${contentDigest("rollbook.foreign-decision.v1", content).slice(0, 12)}`,
    );
  }

  /** Equal rows are separate observations: they may share a task, but not an id. */
  numbered(name: string): string {
    const times = this.#seen.count(name);
    return times === 1 ? name : `${name}:${times}`;
  }
}

/** Equal questions are one task, for all models that answered. A row without a prompt is a separate task: fields alone
 *  do not identify a question, because many questions share them. */
export function taskOfQuestion(
  { prompt, fields }: Pick<DecisionContext, "prompt" | "fields">,
  id: string,
): string {
  return prompt === "" ? id : contentDigest("rollbook.question.v1", { prompt, fields });
}

function contentDigest(tag: string, content: unknown): string {
  return digestJson(tag, content).slice(7, 7 + HEX_DIGITS);
}
