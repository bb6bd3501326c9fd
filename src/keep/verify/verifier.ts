/** Checks blobs one after the other, in any order, and what they say of each other.
 *  In: blobs whose digest the store has recomputed. Out: a report. Keeps facts, not bytes. */
import { columnTag } from "../../base/arrays.ts";
import type { Digest } from "../../base/digest.ts";
import { RollbookError, reasonOf } from "../../base/errors.ts";
import { type Assignment, Assignment as AssignmentType, checkBinding } from "../../contract/assignment.ts";
import {
  type Attestation,
  Attestation as AttestationType,
  checkAttestation,
  type PublicKey,
} from "../../contract/attestation.ts";
import { digestCallLog, MESSAGE_KIND } from "../../contract/call.ts";
import type { Reference } from "../../contract/fields.ts";
import {
  type PolicyRevision,
  PolicyRevision as PolicyRevisionType,
  type RevisionKey,
} from "../../contract/policy-revision.ts";
import { commitTo } from "../../contract/proof.ts";
import { openRecord, parseCanonical, type RecordType } from "../../contract/record.ts";
import { recordType } from "../../contract/records.ts";
import {
  type RolloutContent,
  RolloutContent as RolloutContentType,
  type RolloutEnvelope,
  RolloutEnvelope as RolloutEnvelopeType,
} from "../../contract/rollout.ts";
import type { ReadBlob } from "../../contract/rollout-exchange.ts";
import { checkCoverage, type Stream, type TokenStream } from "../../contract/stream.ts";
import type { Location } from "../../store/blob-store.ts";
import { type BlobFact, BlobFacts } from "./blob-facts.ts";
import type { Problem, VerifyReport } from "./report.ts";

const MASK_KIND = columnTag("u8");
const RECENT_MASKS = 32;

export interface SeenBlob {
  digest: Digest;
  kind: string;
  /** Undefined for a large blob that was hashed in pieces. */
  bytes: Uint8Array | undefined;
  byteLength: number;
  /** A record's digest, or where the bytes stand: put into words only if there is a problem. */
  where: string | Location;
}

/** Something that waits for a blob that has not been seen yet. */
interface Waiting {
  reference: Reference;
  from: Named;
}

/** A stream whose mask was not at hand when its segments were checked. */
interface Maskless {
  stream: TokenStream;
  field: string;
  named: Named;
}

interface Named {
  /** Its own id, once it has been read and if it has one. */
  name: string | undefined;
  kind: string;
  digest: Digest;
  where: string | Location;
}

export class Verifier {
  readonly problems: Problem[] = [];
  readonly #facts = new BlobFacts();
  readonly #trusted: ReadonlySet<string>;
  readonly #whole: boolean;
  readonly #waiting: Waiting[] = [];
  /** Checks that can only be made once every record has been seen. */
  readonly #last: (() => void)[] = [];
  readonly #callLogs = new Map<Digest, Digest>();
  readonly #assignments = new Map<Digest, Assignment>();
  readonly #envelopes = new Set<Digest>();
  readonly #signers = new Map<PublicKey, Digest[]>();
  readonly #revisions = new Map<string, Digest>();
  readonly #namedRevisions = new Map<string, { digest: Digest; from: Named }>();
  /** The last few masks: a stream that comes soon after its mask is checked without reading it again. */
  readonly #recentMasks = new Map<Digest, Uint8Array>();
  readonly #maskless: Maskless[] = [];
  #bytes = 0;
  #external = 0;

  /** `whole`: every blob of the book will be seen, so what an attestation names and nobody has is missing. */
  constructor(options: { trustedKeys: Iterable<string>; whole: boolean }) {
    this.#trusted = new Set(options.trustedKeys);
    this.#whole = options.whole;
  }

  accept(blob: SeenBlob): void {
    this.#bytes += blob.byteLength;
    if (!this.#facts.note(blob.digest, blob.kind, blob.bytes, blob.byteLength)) return;
    const { digest, kind, bytes, where } = blob;
    if (bytes === undefined) return;
    if (kind === MASK_KIND) this.#keepMask(digest, bytes);
    const type = recordType(kind);
    if (type === undefined && kind !== MESSAGE_KIND) return;
    const named: Named = { name: undefined, kind, digest, where };
    this.#guard(named, () =>
      type === undefined ? parseCanonical(bytes, digest) : this.#acceptRecord(type, bytes, named),
    );
  }

  /** Damage that never became a blob. */
  report(problem: Problem): void {
    this.problems.push(problem);
  }

  async finish(read: ReadBlob): Promise<VerifyReport> {
    for (const { reference, from } of this.#waiting) this.#resolve(reference, from, true);
    for (const check of this.#last) check();
    for (const each of this.#maskless) await this.#checkLateCoverage(read, each);
    const unrecorded = this.#checkRevisions();
    return {
      ok: this.problems.length === 0,
      problems: this.problems,
      counts: this.#facts.countByKind(),
      blobs: this.#facts.size,
      bytes: this.#bytes,
      external: this.#external,
      unrecordedRevisions: unrecorded,
      trust: this.#trustReport(),
    };
  }

  #acceptRecord(type: RecordType, bytes: Uint8Array, named: Named): void {
    const record = openRecord(type, bytes, named.digest);
    const { rolloutId, id } = record as { rolloutId?: string; id?: string };
    named.name = rolloutId ?? id;
    for (const reference of type.references(record)) this.#resolve(reference, named, false);
    this.#acceptKnown(type.kind, record, named);
  }

  #acceptKnown(kind: string, record: unknown, named: Named): void {
    if (kind === RolloutContentType.kind) this.#acceptContent(record as RolloutContent, named);
    else if (kind === RolloutEnvelopeType.kind) this.#acceptEnvelope(record as RolloutEnvelope, named);
    else if (kind === AttestationType.kind) this.#acceptAttestation(record as Attestation);
    else if (kind === AssignmentType.kind) this.#assignments.set(named.digest, record as Assignment);
    else if (kind === PolicyRevisionType.kind) this.#acceptRevision(record as PolicyRevision, named);
  }

  #acceptContent(content: RolloutContent, named: Named): void {
    if (content.calls.length > 0) this.#callLogs.set(named.digest, digestCallLog(content.calls));
    for (const [i, stream] of content.streams.entries()) {
      this.#nameRevisions(stream, named);
      if (stream.level === "token") this.#acceptTokens(stream, `streams[${i}]`, named);
    }
    const assignment = content.assignment?.digest;
    if (assignment !== undefined) {
      this.#whenSeen([assignment], named, () => {
        const record = this.#assignments.get(assignment);
        if (record !== undefined) checkBinding(content, record, assignment);
      });
    }
  }

  #acceptTokens(stream: TokenStream, field: string, named: Named): void {
    if (!this.#checkColumns(stream, field))
      this.#last.push(() => this.#guard(named, () => this.#checkColumns(stream, field)));
    const covered =
      stream.segments.length === 1 && stream.segments[0]!.end - stream.segments[0]!.start === stream.length;
    if (covered) return;
    const mask = this.#recentMasks.get(stream.columns.mask.digest);
    if (mask === undefined) this.#maskless.push({ stream, field, named });
    else checkCoverage(stream, mask, field);
  }

  async #checkLateCoverage(read: ReadBlob, { stream, field, named }: Maskless): Promise<void> {
    try {
      const mask = await read(stream.columns.mask.digest);
      if (mask !== undefined) checkCoverage(stream, mask.bytes, field);
    } catch (error) {
      this.#problem(named, error);
    }
  }

  #keepMask(digest: Digest, bytes: Uint8Array): void {
    this.#recentMasks.set(digest, bytes.slice());
    if (this.#recentMasks.size > RECENT_MASKS)
      this.#recentMasks.delete(this.#recentMasks.keys().next().value!);
  }

  #acceptEnvelope(envelope: RolloutEnvelope, named: Named): void {
    this.#envelopes.add(named.digest);
    for (const each of envelope.proofs) {
      if (each.kind === "commitment" && each.digest !== commitTo(envelope.content, each.nonce)) {
        throw new RollbookError(
          "digest-mismatch",
          {},
          `the commitment ${each.digest} does not fit content and nonce`,
        );
      }
      if (each.kind !== "call-log") continue;
      this.#whenSeen([envelope.content], named, () => {
        const actual = this.#callLogs.get(envelope.content) ?? digestCallLog([]);
        if (actual !== each.digest)
          throw new RollbookError(
            "digest-mismatch",
            {},
            `the call-log proof says ${each.digest}, the content gives ${actual}`,
          );
      });
    }
  }

  #acceptAttestation(attestation: Attestation): void {
    checkAttestation(attestation);
    const subjects = this.#signers.get(attestation.signer) ?? [];
    for (const subject of attestation.subjects) subjects.push(subject);
    this.#signers.set(attestation.signer, subjects);
  }

  #acceptRevision(revision: PolicyRevision, named: Named): void {
    const key = `${revision.family} ${revision.id}`;
    const known = this.#revisions.get(key) ?? revision.digest;
    if (known !== revision.digest) throw conflict(revision.id, known, revision.digest);
    this.#revisions.set(key, known);
    if (revision.parent !== undefined)
      this.#nameRevision(`${revision.family} ${revision.parent.id}`, revision.parent.digest, named);
  }

  /** False if a column has not been seen yet, so that the check has to be made again at the end. */
  #checkColumns(stream: TokenStream, field: string): boolean {
    let complete = true;
    for (const [name, column] of Object.entries(stream.columns)) {
      if (column === undefined) continue;
      const fact = this.#facts.get(column.digest);
      if (fact === undefined) complete = false;
      else checkColumn(fact, { name, field, length: column.length, samples: stream.samples });
    }
    return complete;
  }

  #nameRevisions(stream: Stream, named: Named): void {
    let before: RevisionKey | undefined;
    for (const { revision } of stream.level === "token" ? stream.segments : stream.steps) {
      if (revision.id === before?.id && revision.digest === before.digest) continue;
      before = revision;
      this.#nameRevision(`${stream.family} ${revision.id}`, revision.digest, named);
    }
  }

  #nameRevision(key: string, digest: Digest, from: Named): void {
    const known = this.#namedRevisions.get(key);
    if (known === undefined) this.#namedRevisions.set(key, { digest, from });
    else if (known.digest !== digest) throw conflict(key, known.digest, digest);
  }

  #checkRevisions(): string[] {
    const unrecorded: string[] = [];
    for (const [key, { digest, from }] of this.#namedRevisions) {
      const recorded = this.#revisions.get(key);
      if (recorded === undefined) unrecorded.push(key);
      else if (recorded !== digest) this.#problem(from, conflict(key, recorded, digest));
    }
    return unrecorded.sort();
  }

  #resolve(reference: Reference, from: Named, final: boolean): void {
    const kind = this.#facts.kindOf(reference.digest);
    if (kind === undefined) {
      if (!final) this.#waiting.push({ reference, from });
      else if (reference.external === true) this.#external++;
      else if (!this.#whole && from.kind === AttestationType.kind) return;
      else {
        const what = reference.kind === "" ? "a record" : reference.kind;
        this.#problem(
          from,
          new RollbookError(
            "missing-blob",
            {},
            `${reference.field} refers to ${what} ${reference.digest}, which is not there`,
          ),
        );
      }
      return;
    }
    if (reference.kind === "" || kind === reference.kind) return;
    this.#problem(
      from,
      new RollbookError(
        "unknown-schema",
        {},
        `${reference.field} refers to a ${reference.kind}, ${reference.digest} is a ${kind}`,
      ),
    );
  }

  /** Runs a check now if all it needs has been seen, at the end otherwise. */
  #whenSeen(needs: readonly (Digest | undefined)[], named: Named, check: () => void): void {
    if (needs.every((digest) => digest === undefined || this.#facts.has(digest))) check();
    else this.#last.push(() => this.#guard(named, check));
  }

  #guard(named: Named, check: () => unknown): void {
    try {
      check();
    } catch (error) {
      this.#problem(named, error);
    }
  }

  #problem(from: Named, error: unknown): void {
    const code = error instanceof RollbookError ? error.code : "unexpected";
    this.problems.push({
      code,
      record: nameOf(from),
      kind: from.kind,
      digest: from.digest,
      where: placeOf(from.where),
      message: reasonOf(error),
    });
  }

  #trustReport(): VerifyReport["trust"] {
    const signed = new Set<Digest>();
    const trusted = new Set<Digest>();
    const signers = [...this.#signers].map(([key, subjects]) => {
      const mine = new Set(subjects.filter((subject) => this.#envelopes.has(subject)));
      for (const subject of mine) {
        signed.add(subject);
        if (this.#trusted.has(key)) trusted.add(subject);
      }
      return { key, artifacts: mine.size, trusted: this.#trusted.has(key) };
    });
    signers.sort((a, b) => (a.key < b.key ? -1 : 1));
    return { artifacts: this.#envelopes.size, signed: signed.size, trusted: trusted.size, signers };
  }
}

function checkColumn(
  fact: BlobFact,
  at: { name: string; field: string; length: number; samples: number },
): void {
  const bad = (code: string, what: string) => new RollbookError(code, {}, `${at.field}.${at.name} ${what}`);
  if (fact.length !== at.length)
    throw bad("length-mismatch", `has ${fact.length} values, the record says ${at.length}`);
  if (!fact.finite) throw bad("non-finite-number", "holds a number that is not finite");
  if (at.name !== "mask" || fact.ones === at.samples) return;
  const what =
    fact.ones < 0
      ? "holds values other than 0 and 1"
      : `marks ${fact.ones} samples, the record says ${at.samples}`;
  throw bad("bad-mask", what);
}

export function placeOf(where: string | Location): string {
  return typeof where === "string" ? where : `${where.file} at ${where.offset}`;
}

function conflict(revision: string, known: Digest, found: Digest): RollbookError {
  return new RollbookError(
    "revision-conflict",
    {},
    `revision ${revision} appears with two digests, ${known} and ${found}`,
  );
}

/** What people call a record: its own id where it has one. */
function nameOf({ name, kind, digest }: Named): string {
  return name === undefined ? digest : `${kind.replace(/^rollbook\.|\.v\d+$/g, "")} ${name}`;
}
