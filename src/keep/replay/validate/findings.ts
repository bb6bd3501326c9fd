/** The findings of a validation: every error with its array, row, reason and code. */

export type ReplayErrorCode =
  | "manifest"
  | "root"
  | "metadata"
  | "digest"
  | "missing"
  | "damaged"
  | "unexpected"
  | "shape"
  | "hash"
  | "reference"
  | "range"
  | "unique"
  | "value"
  | "chain"
  | "lineage"
  | "selection"
  | "probability"
  | "return"
  | "continuity"
  | "ending"
  | "trainable"
  | "reasons"
  | "split"
  | "dense";

export interface ReplayError {
  /** Path of the array (or file) in the store. */
  readonly array: string;
  /** Row in the segment; null if the error is not in a single row. */
  readonly row: number | null;
  readonly reason: string;
  readonly code: ReplayErrorCode;
}

export class Findings {
  readonly errors: ReplayError[] = [];
  readonly #limit: number;
  count = 0;

  constructor(limit: number) {
    this.#limit = limit;
  }

  add(error: ReplayError): void {
    this.count++;
    if (this.errors.length < this.#limit) this.errors.push(error);
  }
}
