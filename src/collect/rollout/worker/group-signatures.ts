/** Checks attestations of uploads by reference. A worker signs a group of uploads once, so every rollout of the group
 *  carries the same attestation. It is opened, verified and put into the book once. In: bytes, the same unchanged
 *  object for the whole group. Out: the record, and the result of its check. */
import type { Digest } from "../../../base/index.ts";
import { Attestation, checkAttestationAside, openRecord, refuse } from "../../../contract/index.ts";
import type { BlobStore } from "../../../store/index.ts";

interface OpenedAttestation {
  readonly record: Attestation;
  holds?: Promise<void>;
  isPut?: true;
}

export class GroupSignatures {
  readonly #book: Pick<BlobStore, "has" | "put">;
  readonly #opened = new WeakMap<Uint8Array, OpenedAttestation>();

  constructor(book: Pick<BlobStore, "has" | "put">) {
    this.#book = book;
  }

  open(bytes: Uint8Array): Attestation {
    return this.#of(bytes).record;
  }

  /** Throws a refusal unless the signature is valid and the book holds everything it covers. */
  async check(bytes: Uint8Array): Promise<void> {
    const opened = this.#of(bytes);
    opened.holds ??= this.#check(opened.record).catch((error: unknown) => {
      // A missing blob may still arrive, so the failure is not cached.
      this.#opened.delete(bytes);
      throw error;
    });
    await opened.holds;
  }

  /** Puts the attestation into the book, unless this object was just put. The caller flushes. */
  put(bytes: Uint8Array): void {
    const opened = this.#of(bytes);
    if (opened.isPut !== true) this.#book.put(Attestation.kind, bytes);
    opened.isPut = true;
  }

  async #check(attestation: Attestation): Promise<void> {
    await checkAttestationAside(attestation);
    await requireSubjects(attestation.subjects, (digest) => this.#book.has(digest));
  }

  #of(bytes: Uint8Array): OpenedAttestation {
    const known = this.#opened.get(bytes);
    if (known !== undefined) return known;
    const opened = { record: openRecord(Attestation, bytes, "attestation") };
    this.#opened.set(bytes, opened);
    return opened;
  }
}

/** An attestation stored beside the artifact must not name a blob that the book will never hold. */
export async function requireSubjects(
  subjects: readonly Digest[],
  has: (digest: Digest) => boolean | Promise<boolean>,
): Promise<void> {
  for (const subject of subjects)
    if (!(await has(subject)))
      throw refuse(
        "missing-blob",
        { digest: subject, what: "attested record" },
        `the attestation also covers ${subject}, which is not in the book. Sign each inline upload by itself.`,
      );
}
