/** Refuses to open a rollout that names records missing in the book. In: an opening, and a function that reads the
 *  book. Out: nothing, or a refusal. An artifact with missing records can be neither verified nor cut into batches.
 *  A check at sealing would be too late: the calls are then paid for. */
import type { Digest, Id } from "../../../base/index.ts";
import {
  Assignment,
  checkBinding,
  isRefusal,
  openRecord,
  type Reference,
  RolloutContent,
} from "../../../contract/index.ts";
import type { OpenedEvent } from "../journal/index.ts";
import type { HeldBlob } from "../sealing/index.ts";
import { HttpRefusal } from "../wire/index.ts";
import type { LookUp } from "./closed-index.ts";

/** Facts of a record in the book. Records stay in the book, so each is read once. */
interface Known {
  readonly kind: string;
  readonly assignment?: Assignment;
}

/** Cache size. A launch opens the samples of one task one after the other. */
const REMEMBERED = 4096;

export class NamedRecords {
  readonly #look: LookUp;
  readonly #known = new Map<Digest, Known>();

  constructor(look: LookUp) {
    this.#look = look;
  }

  /** Undefined if the opening names no records: most openings do not wait. */
  check(id: Id, opening: OpenedEvent): Promise<void> | undefined {
    const references = referencesOf(opening);
    return references.length === 0 ? undefined : this.#check(id, opening, references);
  }

  async #check(id: Id, opening: OpenedEvent, references: readonly Reference[]): Promise<void> {
    const held = await this.#held(references.map(({ digest }) => digest));
    for (const reference of references) {
      const known = held.get(reference.digest);
      if (known?.kind !== reference.kind) throw notHeld(reference, known?.kind);
    }
    const bound = opening.assignment?.digest;
    if (bound === undefined) return;
    try {
      checkBinding({ rolloutId: id, ...opening }, held.get(bound)!.assignment!, bound);
    } catch (error) {
      if (!isRefusal(error)) throw error;
      throw new HttpRefusal(422, error.code, error.message, { fields: error.fields, cause: error });
    }
  }

  /** The subset of the digests that the book holds. */
  async #held(digests: readonly Digest[]): Promise<ReadonlyMap<Digest, Known>> {
    const held = new Map<Digest, Known>();
    for (const digest of digests) {
      const known = this.#known.get(digest);
      if (known !== undefined) held.set(digest, known);
    }
    const unknown = digests.filter((digest) => !held.has(digest));
    if (unknown.length === 0) return held;
    const found = await this.#look(unknown);
    for (const [i, digest] of unknown.entries()) {
      const blob = found[i];
      if (blob === null || blob === undefined) continue;
      const known = knownOf(blob, digest);
      held.set(digest, known);
      this.#remember(digest, known);
    }
    return held;
  }

  #remember(digest: Digest, known: Known): void {
    this.#known.set(digest, known);
    if (this.#known.size <= REMEMBERED) return;
    for (const oldest of this.#known.keys()) {
      this.#known.delete(oldest);
      return;
    }
  }
}

/** References of the future artifact, except those that the gateway records itself. */
function referencesOf({ task, assignment }: OpenedEvent): Reference[] {
  if (task.digest === undefined && assignment === undefined) return [];
  const content = { task, ...(assignment === undefined ? {} : { assignment }), calls: [], streams: [] };
  return RolloutContent.references(content as unknown as RolloutContent);
}

function knownOf({ kind, bytes }: HeldBlob, digest: Digest): Known {
  return kind === Assignment.kind ? { kind, assignment: openRecord(Assignment, bytes, digest) } : { kind };
}

function notHeld({ digest, kind, field }: Reference, actual: string | undefined): HttpRefusal {
  const found =
    actual === undefined
      ? "which this gateway's book does not hold"
      : `which is a ${actual} in this gateway's book`;
  return new HttpRefusal(
    422,
    "missing-blob",
    `${field} names the ${kind} ${digest}, ${found}. Put the record into that book first (\`rollbook artifact import\`), or open the rollout without ${field}.`,
    { fields: { field, digest, kind } },
  );
}
