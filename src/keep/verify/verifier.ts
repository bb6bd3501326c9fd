/** Checks blobs one after the other, in any order, and their claims about each other.
 *  In: blobs whose digest the store has recomputed. Out: a report. Keeps facts, not bytes. */
import { type Digest, RollbookError, reasonOf } from "../../base/index.ts";
import {
  Assignment,
  Attestation,
  BookHead,
  checkBinding,
  checkCoverage,
  checkHead,
  commitTo,
  digestCallLog,
  MESSAGE_KIND,
  openRecord,
  PolicyRevision,
  parseCanonical,
  type ReadBlob,
  type RecordType,
  type Reference,
  RolloutContent,
  RolloutEnvelope,
  recordType,
  type TokenStream,
  Tombstone,
} from "../../contract/index.ts";
import { isSignedKind, type Location } from "../../store/index.ts";
import { BlobFacts, isColumnKind, type NotedBlob } from "./blob-facts.ts";
import { checkColumns, checkRuns, isCovered } from "./check-columns.ts";
import { Erasures } from "./erasures.ts";
import { FoldedHeads } from "./folded-heads.ts";
import type { ErasedReport, Problem, VerifyReport } from "./report.ts";
import { RevisionNames } from "./revision-names.ts";
import { TrustTally } from "./trust-tally.ts";

interface SeenBlob extends NotedBlob {
  digest: Digest;
  /** A record's digest, or the location of the bytes: formatted only if there is a problem. */
  where: string | Location;
}

/** True for kinds whose bytes the verifier examines; of other kinds it only notes their presence. */
export function isLookedInto(kind: string): boolean {
  return recordType(kind) !== undefined || kind === MESSAGE_KIND || isColumnKind(kind);
}

/** A reference to a blob that has not been seen yet. */
interface WaitingReference {
  reference: Reference;
  from: NamedBlob;
}

/** A stream whose mask was not available when its segments were checked. */
interface Maskless {
  stream: TokenStream;
  field: string;
  named: NamedBlob;
}

interface NamedBlob {
  /** Own id of the record, once it has been read and if it has one. */
  name: string | undefined;
  kind: string;
  digest: Digest;
  where: string | Location;
}

export class Verifier {
  readonly problems: Problem[] = [];
  readonly #facts = new BlobFacts();
  readonly #whole: boolean;
  readonly #waiting: WaitingReference[] = [];
  /** Checks that need every record to have been seen. */
  readonly #last: (() => void)[] = [];
  readonly #callLogs = new Map<Digest, Digest>();
  readonly #assignments = new Map<Digest, Assignment>();
  readonly #trust: TrustTally;
  readonly #revisions = new RevisionNames<NamedBlob>();
  readonly #maskless: Maskless[] = [];
  readonly #erasures = new Erasures();
  /** Digests that signatures name, once all signatures have been seen. */
  #attested: ReadonlySet<Digest> | undefined;
  /** First content of each rollout id. `#sameId`: all contents, if an id has several. */
  readonly #rollouts = new Map<string, Digest>();
  readonly #sameId = new Map<string, Digest[]>();
  readonly #folded = new FoldedHeads();
  readonly #headSigners = new Map<Digest, string>();
  #expected: Digest | undefined;
  #latest: VerifyReport["heads"]["latest"];
  #heads = 0;
  #bytes = 0;
  readonly #outside: VerifyReport["outside"] = [];

  /** `whole`: every blob of the book will be seen, so a blob that an attestation names and the book lacks is
   *  missing. */
  constructor(options: { trustedKeys: Iterable<string>; whole: boolean }) {
    this.#trust = new TrustTally(options.trustedKeys);
    this.#whole = options.whole;
  }

  accept(blob: SeenBlob): void {
    this.#bytes += blob.byteLength;
    if (!this.#facts.note(blob)) return;
    const { digest, kind, bytes, where } = blob;
    if (bytes === undefined) return;
    const type = recordType(kind);
    if (type === undefined && kind !== MESSAGE_KIND) return;
    const named: NamedBlob = { name: undefined, kind, digest, where };
    this.#guard(named, () =>
      type === undefined ? parseCanonical(bytes, digest) : this.#acceptRecord(type, bytes, named),
    );
  }

  /** Adds damage that never became a blob. */
  report(problem: Problem): void {
    this.problems.push(problem);
  }

  isTrusted(signer: string): boolean {
    return this.#trust.isTrusted(signer);
  }

  /** Expects a head that the reader has kept: it must be among the records, or folded by a trusted key. The packs it
   *  names were compared separately. Checked at the end. */
  expect(head: Digest): void {
    this.#expected = head;
  }

  /** True if the blob is erased and missing. */
  isErased(digest: Digest): boolean {
    return this.#erasures.names(digest) && !this.#facts.has(digest);
  }

  /** Notes a batch that cannot be assembled again. */
  noteErasedBatch(batch: ErasedReport["batches"][number]): void {
    this.#erasures.addBatch(batch);
  }

  async finish(read: ReadBlob): Promise<VerifyReport> {
    await this.#folded.read(read, (by, message) =>
      this.problems.push({
        code: "bad-fold",
        record: by,
        kind: BookHead.kind,
        digest: by,
        where: by,
        message,
      }),
    );
    if (this.#expected !== undefined) this.#lookFor(this.#expected);
    for (const { reference, from } of this.#waiting)
      if (!(await this.#cameLate(read, reference))) this.#resolve(reference, from, true);
    for (const check of this.#last) check();
    this.#reportUnfinished();
    for (const each of this.#maskless) await this.#checkLateCoverage(read, each);
    const unrecordedRevisions = this.#revisions.finish((from, error) => this.#problem(from, error));
    return {
      ok: this.problems.length === 0,
      problems: this.problems,
      counts: this.#facts.countByKind(),
      blobs: this.#facts.size,
      bytes: this.#bytes,
      erased: this.#erasures.report(this.#trust, { whole: this.#whole }),
      external: this.#outside.length,
      outside: this.#outside,
      sameId: [...this.#sameId].map(([rollout, contents]) => ({ rollout, contents: contents.sort() })),
      unrecordedRevisions,
      trust: this.#trust.report(),
      isFolded: (head) => this.#isFolded(head),
      heads: { count: this.#heads, ...(this.#latest === undefined ? {} : { latest: this.#latest }) },
    };
  }

  #acceptRecord(type: RecordType, bytes: Uint8Array, named: NamedBlob): void {
    const record = openRecord(type, bytes, named.digest);
    const { rolloutId, id } = record as { rolloutId?: string; id?: string };
    named.name = rolloutId ?? id;
    for (const reference of type.references(record)) this.#resolve(reference, named, false);
    if (isSignedKind(type.kind)) this.#trust.addRoot(named.digest, type.kind);
    this.#acceptKnown(type.kind, record, named);
  }

  #acceptKnown(kind: string, record: unknown, named: NamedBlob): void {
    if (kind === RolloutContent.kind) this.#acceptContent(record as RolloutContent, named);
    else if (kind === RolloutEnvelope.kind) this.#acceptEnvelope(record as RolloutEnvelope, named);
    else if (kind === Attestation.kind) this.#trust.addAttestation(record as Attestation);
    else if (kind === Assignment.kind) this.#assignments.set(named.digest, record as Assignment);
    else if (kind === Tombstone.kind) this.#erasures.add(named.digest, record as Tombstone);
    else if (kind === BookHead.kind) this.#acceptHead(record as BookHead, named);
    else if (kind === PolicyRevision.kind) this.#revisions.record(record as PolicyRevision, named);
  }

  #acceptHead(head: BookHead, { digest }: NamedBlob): void {
    checkHead(head);
    this.#trust.addSigned(digest, head.signer);
    this.#folded.add(digest, head);
    this.#headSigners.set(digest, head.signer);
    if (this.#latest === undefined || head.sequence > this.#latest.sequence)
      this.#latest = { digest, sequence: head.sequence, atMs: head.atMs, signer: head.signer };
    this.#heads++;
  }

  #acceptContent(content: RolloutContent, named: NamedBlob): void {
    if (content.calls.length > 0) this.#callLogs.set(named.digest, digestCallLog(content.calls));
    for (const [i, stream] of content.streams.entries()) {
      this.#revisions.nameAll(stream, named);
      if (stream.level === "token") this.#acceptTokens(stream, `streams[${i}]`, named);
    }
    const known = this.#rollouts.get(content.rolloutId);
    if (known === undefined) this.#rollouts.set(content.rolloutId, named.digest);
    else {
      const before = this.#sameId.get(content.rolloutId) ?? [known];
      this.#sameId.set(content.rolloutId, [...before, named.digest]);
    }
    const assignment = content.assignment?.digest;
    if (assignment !== undefined) {
      this.#whenSeen([assignment], named, () => {
        const record = this.#assignments.get(assignment);
        if (record !== undefined) checkBinding(content, record, assignment);
      });
    }
  }

  #acceptTokens(stream: TokenStream, field: string, named: NamedBlob): void {
    if (!checkColumns(this.#facts, stream, field))
      this.#last.push(() => this.#guard(named, () => checkColumns(this.#facts, stream, field)));
    if (isCovered(stream)) return;
    const runs = this.#facts.runsOf(stream.columns.mask.digest);
    if (runs === undefined) this.#maskless.push({ stream, field, named });
    else checkRuns(stream, runs, field);
  }

  async #checkLateCoverage(read: ReadBlob, { stream, field, named }: Maskless): Promise<void> {
    try {
      const mask = await read(stream.columns.mask.digest);
      if (mask !== undefined) checkCoverage(stream, mask.bytes, field);
    } catch (error) {
      this.#problem(named, error);
    }
  }

  #acceptEnvelope(envelope: RolloutEnvelope, named: NamedBlob): void {
    for (const each of envelope.proofs) {
      if (each.kind === "commitment" && each.digest !== commitTo(envelope.content, each.nonce)) {
        throw mismatch(`the commitment ${each.digest} does not fit content and nonce`);
      }
      if (each.kind !== "call-log") continue;
      this.#whenSeen([envelope.content], named, () => {
        // A missing content is reported as a separate problem.
        const actual = this.#callLogs.get(envelope.content) ?? digestCallLog([]);
        if (this.#facts.has(envelope.content) && actual !== each.digest)
          throw mismatch(`the call-log proof says ${each.digest}, the content gives ${actual}`);
      });
    }
  }

  /** True if the book has a blob that the scan did not show: another writer put it in a pack that had already been
   *  read. */
  async #cameLate(read: ReadBlob, reference: Reference): Promise<boolean> {
    if (!this.#whole || reference.external === true || this.#facts.has(reference.digest)) return false;
    try {
      const { kind } = (await read(reference.digest)) ?? {};
      return kind !== undefined && (reference.kind === "" || reference.kind === kind);
    } catch {
      return false; // damaged: the scan has reported it, and the reference is reported too
    }
  }

  #resolve(reference: Reference, from: NamedBlob, final: boolean): void {
    const kind = this.#facts.kindOf(reference.digest);
    if (kind === undefined) {
      if (!final) this.#waiting.push({ reference, from });
      else if (!this.#whole && from.kind === Attestation.kind) return;
      else if (this.#erasures.meets(reference) || this.#isFoldedFor(reference, from)) return;
      else if (reference.external === true && !this.#wasHeld(reference.digest))
        this.#outside.push({
          record: from.name ?? from.digest,
          kind: from.kind,
          field: reference.field,
          digest: reference.digest,
          what: reference.what ?? "blob",
        });
      else {
        const what = reference.kind === "" ? "a record" : reference.kind;
        const message = `${reference.field} refers to ${what} ${reference.digest}, which is missing`;
        this.#report(from, "missing-blob", message);
      }
      return;
    }
    if (reference.kind === "" || kind === reference.kind) return;
    const message = `${reference.field} refers to a ${reference.kind}, ${reference.digest} is a ${kind}`;
    this.#report(from, "unknown-schema", message);
  }

  /** True if the missing head was folded by the key that continues the chain, or by a trusted key. */
  #isFoldedFor({ digest, kind }: Reference, from: NamedBlob): boolean {
    if (kind !== BookHead.kind || from.kind !== BookHead.kind) return false;
    const own = this.#headSigners.get(from.digest);
    return this.#folded.signersOf(digest).some((signer) => signer === own || this.isTrusted(signer));
  }

  #isFolded(head: Digest): boolean {
    return this.#folded.signersOf(head).some((signer) => this.isTrusted(signer));
  }

  #lookFor(head: Digest): void {
    const kind = this.#facts.kindOf(head);
    if (kind === BookHead.kind) return;
    if (this.#isFolded(head)) return;
    const message = missingHead(head, { kind, signer: this.#folded.signersOf(head)[0] });
    this.problems.push({ code: "head-missing", record: head, digest: head, where: head, message });
  }

  /** True if a signature also names this blob: then the book had it. */
  #wasHeld(digest: Digest): boolean {
    this.#attested ??= this.#trust.subjects();
    return this.#attested.has(digest);
  }

  #reportUnfinished(): void {
    for (const { digest, kind, by } of this.#erasures.unfinished((each) => this.#facts.has(each)))
      this.problems.push({
        code: "erase-unfinished",
        record: digest,
        kind,
        digest,
        where: by,
        message: `the tombstone ${by} says that this ${kind} was erased, and it is there. Run the same \`rollbook artifact erase\` again`,
      });
  }

  /** Runs a check now if all blobs it needs have been seen, otherwise at the end. */
  #whenSeen(needs: readonly (Digest | undefined)[], named: NamedBlob, check: () => void): void {
    if (needs.every((digest) => digest === undefined || this.#facts.has(digest))) check();
    else this.#last.push(() => this.#guard(named, check));
  }

  #guard(named: NamedBlob, check: () => unknown): void {
    try {
      check();
    } catch (error) {
      this.#problem(named, error);
    }
  }

  #problem(from: NamedBlob, error: unknown): void {
    this.#report(from, error instanceof RollbookError ? error.code : "unexpected", reasonOf(error));
  }

  #report(from: NamedBlob, code: string, message: string): void {
    const { kind, digest } = from;
    this.problems.push({ code, record: nameOf(from), kind, digest, where: placeOf(from.where), message });
  }
}

function mismatch(message: string): RollbookError {
  return new RollbookError("digest-mismatch", {}, message);
}

function placeOf(where: string | Location): string {
  return typeof where === "string" ? where : `${where.file} at ${where.offset}`;
}

/** Name of a record for people: its own id if it has one, else its digest. */
function nameOf({ name, kind, digest }: NamedBlob): string {
  return name === undefined ? digest : `${kind.replace(/^rollbook\.|\.v\d+$/g, "")} ${name}`;
}

function missingHead(
  head: Digest,
  { kind, signer }: { kind: string | undefined; signer: string | undefined },
): string {
  if (kind !== undefined)
    return `${head} is a ${kind}, not a head. Give the digest that \`rollbook head\` printed`;
  if (signer !== undefined)
    return `the expected head ${head} is not in the book, and only ${signer} says that gc folded it (\`rollbook keys trust\` accepts a key)`;
  return `the expected head ${head} is not in the book: the book was put back to an earlier state, its end was cut off, or the head is another book's. Compare the digest with the one that \`rollbook head\` printed`;
}
