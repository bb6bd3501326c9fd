/** Checks that a revision id has one digest across the whole book: between records, and between records and samples. */
import { type Digest, RollbookError } from "../../base/index.ts";
import type { PolicyRevision, RevisionKey, Stream } from "../../contract/index.ts";

/** `From`: the source to blame if a name clashes. */
export class RevisionNames<From> {
  readonly #recorded = new Map<string, Digest>();
  readonly #named = new Map<string, { digest: Digest; from: From }>();

  record(revision: PolicyRevision, from: From): void {
    const key = nameOf(revision.family, revision.id);
    const known = this.#recorded.get(key) ?? revision.digest;
    if (known !== revision.digest) throw conflict(key, known, revision.digest);
    this.#recorded.set(key, known);
    if (revision.parent !== undefined) this.#name(revision.family, revision.parent, from);
  }

  nameAll(stream: Stream, from: From): void {
    let before: RevisionKey | undefined;
    for (const { revision } of stream.level === "token" ? stream.segments : stream.steps) {
      if (revision.id === before?.id && revision.digest === before.digest) continue;
      before = revision;
      this.#name(stream.family, revision, from);
    }
  }

  /** Call after all blobs were seen. Reports clashes between samples and records, and returns revisions without a
   *  record. */
  finish(blame: (from: From, error: RollbookError) => void): string[] {
    const unrecorded: string[] = [];
    for (const [key, { digest, from }] of this.#named) {
      const recorded = this.#recorded.get(key);
      if (recorded === undefined) unrecorded.push(key);
      else if (recorded !== digest) blame(from, conflict(key, recorded, digest));
    }
    return unrecorded.sort();
  }

  #name(family: string, revision: RevisionKey, from: From): void {
    const key = nameOf(family, revision.id);
    const known = this.#named.get(key);
    if (known === undefined) this.#named.set(key, { digest: revision.digest, from });
    else if (known.digest !== revision.digest) throw conflict(key, known.digest, revision.digest);
  }
}

/** An id may hold a space but no slash, so two names never share a key. */
function nameOf(family: string, id: string): string {
  return `${family}/${id}`;
}

function conflict(revision: string, known: Digest, found: Digest): RollbookError {
  const message = `revision ${revision} appears with two digests, ${known} and ${found}`;
  return new RollbookError("revision-conflict", { revision, known, found }, message);
}
