/** Checks attestations of uploads by reference. A worker signs what it uploads together once, so that the same attestation
 *  comes with every rollout of the group: it is opened, verified and put into the book once. In: bytes, the same
 *  object for the whole group, which never changes. Out: the record, and whether it holds. */
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

  /** Throws a refusal unless the signature is good and the book holds everything it covers. */
  async check(bytes: Uint8Array): Promise<void> {
    const opened = this.#of(bytes);
    opened.holds ??= this.#check(opened.record).catch((error: unknown) => {
      // What is missing now may come.
      this.#opened.delete(bytes);
      throw error;
    });
    await opened.holds;
  }

  /** Into the book, if this one did not just go there. The caller flushes. */
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

/** Kept beside the artifact, an attestation must not name what the book will never have. */
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
