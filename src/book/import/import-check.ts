/** Decides if a sealed record may enter the book: its references exist, and no record contradicts it.
 *  In: prepared records. Out: nothing, or a refusal. Writes nothing. */
import { type Digest, RollbookError } from "../../base/index.ts";
import {
  Assignment,
  checkBinding,
  openRecord,
  PolicyRevision,
  type RolloutContent,
  recordType,
  refuse,
  type Sealed,
} from "../../contract/index.ts";
import type { BlobStore } from "../../store/index.ts";
import type { BookIndex } from "../open/index.ts";
import type { Prepared } from "./prepare.ts";

export class ImportCheck {
  readonly #store: Pick<BlobStore, "get">;
  /** `family/id` (ids contain no slash) → digest of the weights. */
  readonly #revisions = new Map<string, Digest>();
  /** Digests admitted in this run that may not be in the book yet: a strict import checks everything before it
   *  writes. */
  readonly #staged = new Map<Digest, string>();
  readonly #assignments = new Map<Digest, Assignment>();
  readonly #kinds = new Map<Digest, string>();
  readonly #tombstonesOf: BookIndex["tombstonesOf"];

  constructor(store: Pick<BlobStore, "get">, index: BookIndex) {
    this.#store = store;
    this.#tombstonesOf = (digest) => index.tombstonesOf(digest);
    for (const { family, id, fields } of index.ofKind(PolicyRevision.kind))
      this.#revisions.set(`${family}/${id}`, fields.digest as Digest);
  }

  async admit(prepared: Prepared, where: string): Promise<void> {
    for (const record of prepared.records) this.#requireNotErased(record, where);
    for (const record of prepared.records) await this.#requireReferences(record, prepared, where);
    const names = [...this.#revisionsNamed(prepared)];
    for (const [name, digest] of names) this.#requireSameWeights(name, digest, where);
    if (prepared.content?.record.assignment !== undefined)
      await this.#requireBinding(prepared.content.record, where);
    for (const [name, digest] of names) this.#revisions.set(name, digest);
    for (const record of prepared.records) {
      this.#staged.set(record.digest, record.kind);
      if (record.kind === Assignment.kind) this.#assignments.set(record.digest, record.record as Assignment);
    }
  }

  #requireNotErased({ digest, kind }: Sealed<unknown>, where: string): void {
    const [tombstone] = this.#tombstonesOf(digest);
    if (tombstone === undefined) return;
    throw new RollbookError(
      "erased",
      { where, digest, kind, tombstone },
      `${where}: this ${kind} was erased from the book on purpose, as the tombstone ${tombstone} says. Leave it out.`,
    );
  }

  async #requireReferences(record: Sealed<unknown>, prepared: Prepared, where: string): Promise<void> {
    const own = new Set(prepared.blobs.map((blob) => blob.digest));
    for (const reference of recordType(record.kind)!.references(record.record)) {
      if (reference.external === true || own.has(reference.digest)) continue;
      const kind = await this.#kindOf(reference.digest);
      if (kind !== undefined && (reference.kind === "" || reference.kind === kind)) continue;
      const wanted = reference.kind === "" ? "a record" : `a ${reference.kind}`;
      throw refuse(
        "missing-blob",
        { where, field: reference.field, digest: reference.digest },
        `${where}: ${reference.field} refers to ${wanted} ${reference.digest}, ${kind === undefined ? "which is not in the book" : `which is a ${kind}`}. Import it first: earlier in the file, or in a file before.`,
      );
    }
  }

  async #kindOf(digest: Digest): Promise<string | undefined> {
    const known = this.#staged.get(digest) ?? this.#kinds.get(digest);
    if (known !== undefined) return known;
    const blob = await this.#store.get(digest);
    if (blob !== undefined) this.#kinds.set(digest, blob.kind);
    return blob?.kind;
  }

  *#revisionsNamed(prepared: Prepared): Generator<[string, Digest]> {
    for (const { kind, record } of prepared.records) {
      if (kind !== PolicyRevision.kind) continue;
      const { family, id, digest, parent } = record as PolicyRevision;
      yield [`${family}/${id}`, digest];
      if (parent !== undefined) yield [`${family}/${parent.id}`, parent.digest];
    }
    for (const stream of prepared.content?.record.streams ?? [])
      for (const { revision } of stream.level === "token" ? stream.segments : stream.steps)
        yield [`${stream.family}/${revision.id}`, revision.digest];
  }

  #requireSameWeights(name: string, digest: Digest, where: string): void {
    const known = this.#revisions.get(name);
    if (known === undefined || known === digest) return;
    const [family, id] = name.split("/");
    throw refuse(
      "revision-conflict",
      { where, family, revision: id, digests: [known, digest] },
      `${where}: revision ${id} of ${family} has the digest ${digest} here and ${known} in the book. New weights need a new revision id.`,
    );
  }

  async #requireBinding(content: RolloutContent, where: string): Promise<void> {
    const { digest } = content.assignment!;
    const known = this.#assignments.get(digest);
    const assignment = known ?? openRecord(Assignment, (await this.#store.get(digest))!.bytes, where);
    this.#assignments.set(digest, assignment);
    checkBinding(content, assignment, digest);
  }
}
