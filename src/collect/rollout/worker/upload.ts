/** Opens an uploaded artifact and checks it against its claim and its assignment.
 *  In: the upload, a reader of the book. Out: the opened records, or a refusal with a code.
 *  Every digest is recomputed, and the artifact must name every blob. Writes nothing. */
import { type Digest, digestBytes, type RollbookError } from "../../../base/index.ts";
import {
  Assignment,
  Call,
  checkAttestationAside,
  checkBinding,
  checkProofs,
  checkTokenColumns,
  MESSAGE_KIND,
  openMessage,
  openRecord,
  type PublicKey,
  type ReadBlob,
  type RecordOf,
  type RecordType,
  type Reference,
  RolloutContent,
  RolloutEnvelope,
  readTokenColumns,
  recordType,
  refuse,
  rolloutIdFor,
} from "../../../contract/index.ts";
import type { Blob } from "../../../store/index.ts";
import type { ClaimKey } from "../../queue/index.ts";
import { claimedNames, claimId, parseClaimId } from "../work/index.ts";
import { type GroupSignatures, requireSubjects } from "./group-signatures.ts";
import type { RecentRecords } from "./recent-records.ts";
import type { RegisteredWorker } from "./worker-registration.ts";

/** Larger uploads go by reference: the worker puts the blobs into the book and names them. */
export const INLINE_LIMIT_BYTES = 65_536;

export interface Upload {
  readonly claim: ClaimKey;
  readonly content: Digest;
  readonly envelope: Digest;
  /** A sealed attestation by the worker's key whose subjects include the envelope. */
  readonly attestation: Uint8Array;
  /** The blobs of the artifact. Omitted blobs are already in the book. Empty: an upload by reference. */
  readonly blobs: readonly Blob[];
  /** Made under an earlier claim of this item, whose holder died before reporting it. Needs a trusted signature. */
  readonly adopted?: true;
}

interface OpenedUpload {
  readonly content: RolloutContent;
  readonly envelope: RolloutEnvelope;
}

export function inlineBytes({ blobs, attestation }: Upload): number {
  return blobs.reduce((sum, blob) => sum + blob.bytes.byteLength, attestation.byteLength);
}

export async function openUpload(
  upload: Upload,
  by: {
    worker: RegisteredWorker;
    attempt: number;
    trusts: (key: PublicKey) => boolean;
    read: ReadBlob;
    has: (digest: Digest) => Promise<boolean>;
    signatures: GroupSignatures;
    records: RecentRecords;
    /** This process sealed the artifact: the book holds everything it names, checked and durable. */
    isSealedHere: boolean;
  },
): Promise<OpenedUpload> {
  const parts = new UploadParts(upload, by.read, by.records);
  const envelope = await parts.open(RolloutEnvelope, upload.envelope, "envelope");
  const content = await parts.open(RolloutContent, upload.content, "content");
  checkClaimed(upload, { content, envelope }, by);
  if (by.isSealedHere) return { content, envelope };
  await checkSigned(upload, by);
  const assigned = content.assignment!.digest;
  checkBinding(content, await parts.open(Assignment, assigned, "assignment"), assigned);
  checkProofs(envelope, content);
  await checkReferences(parts, content, envelope);
  parts.refuseUnused();
  await parts.needNamed(new Set([upload.content, upload.envelope, ...content.calls]));
  return { content, envelope };
}

/** Refuses blobs that refer to a blob that is neither among them nor in the book. For a caller that puts the blobs into
 *  the book itself: they stay in the book even if the upload that names them is refused. */
export async function checkNamed(blobs: readonly Blob[], read: ReadBlob): Promise<void> {
  await new UploadParts({ blobs }, read).needNamed(new Set());
}

/** Blobs by digest, inline blobs first. Tracks the blobs that were requested and found. */
class UploadParts {
  readonly #inline: Map<Digest, Blob>;
  /** Kinds of the found blobs. */
  readonly #found = new Map<Digest, string>();
  readonly #book: ReadBlob;
  /** Used only for an upload by reference: inline blobs are not in the book, and may never be. */
  readonly #records: RecentRecords | undefined;

  constructor({ blobs }: Pick<Upload, "blobs">, book: ReadBlob, records?: RecentRecords) {
    this.#inline = new Map(blobs.map((blob) => [digestBytes(blob.kind, blob.bytes), blob]));
    this.#book = book;
    this.#records = blobs.length === 0 ? records : undefined;
  }

  readonly read: ReadBlob = async (digest) => {
    const blob = this.#inline.get(digest) ?? (await this.#book(digest));
    if (blob !== undefined) this.#found.set(digest, blob.kind);
    return blob;
  };

  async open<T extends RecordType>(type: T, digest: Digest, what: string): Promise<RecordOf<T>> {
    const held = this.#records?.held(type, digest);
    if (held !== undefined) {
      this.#found.set(digest, type.kind);
      return held;
    }
    const blob = await this.read(digest);
    if (blob === undefined) throw this.#missing(digest, what);
    if (blob.kind !== type.kind)
      throw refuse(
        "bad-record",
        { digest, expected: type.kind, actual: blob.kind },
        `the ${what} ${digest} is a ${blob.kind}, not a ${type.kind}.`,
      );
    const record = openRecord(type, blob.bytes, what);
    this.#records?.add(type, digest, record);
    return record;
  }

  /** Requires that the blob is present and has the named kind. An `external` blob may be absent here. */
  async need({ digest, kind, field, external }: Reference): Promise<void> {
    const actual = this.#found.get(digest) ?? (await this.read(digest))?.kind;
    if (actual === undefined && external !== true) throw this.#missing(digest, field);
    if (actual === undefined || kind === "" || kind === actual) return;
    throw refuse(
      "missing-blob",
      { digest, what: field, expected: kind, actual },
      `${field} names the ${kind} ${digest}, which is a ${actual}. Name a ${kind}, or leave ${field} out.`,
    );
  }

  /** Requires every blob that the inline records refer to, except for records already checked. */
  async needNamed(checked: ReadonlySet<Digest>): Promise<void> {
    for (const [digest, { kind, bytes }] of this.#inline) {
      const type = recordType(kind);
      if (type === undefined || checked.has(digest)) continue;
      for (const reference of type.references(openRecord(type, bytes, digest))) await this.need(reference);
    }
  }

  /** A blob that no record names would be stored without a purpose, or for an unintended one. */
  refuseUnused(): void {
    for (const [digest, { kind }] of this.#inline)
      if (!this.#found.has(digest))
        throw refuse(
          "digest-mismatch",
          { digest, kind },
          `the upload brings a ${kind} ${digest} that its artifact does not name. Send what was sealed, unchanged.`,
        );
  }

  /** In an inline upload, bytes were sent, but no blob hashes to the claimed digest. */
  #missing(digest: Digest, what: string): RollbookError {
    if (this.#inline.size > 0 && (what === "envelope" || what === "content"))
      return refuse(
        "digest-mismatch",
        { expected: digest, what },
        `no uploaded blob hashes to the ${what} ${digest}. Send what was sealed, unchanged.`,
      );
    return refuse(
      "missing-blob",
      { digest, what },
      `the ${what} ${digest} is neither in the upload nor in the book. Put it into the book before naming it.`,
    );
  }
}

/** Requires that the artifact was made for this worker's claim, or for an earlier claim of the same item. */
function checkClaimed(
  upload: Upload,
  { content, envelope }: OpenedUpload,
  { worker, attempt }: { worker: RegisteredWorker; attempt: number },
): void {
  const bound = content.assignment;
  const item = bound === undefined ? undefined : rolloutIdFor(bound.digest, bound.sample);
  const claim = upload.adopted === true ? claimOf(envelope, upload.claim) : upload.claim;
  // Through a gateway, every claim makes a rollout with a separate name.
  const name = claimedNames(claim).includes(content.rolloutId) ? content.rolloutId : claim.item;
  const pairs: [string, unknown, unknown][] = [
    ["envelope.content", upload.content, envelope.content],
    ["envelope.claim", claimId(claim), envelope.claim],
    ["assignment", upload.claim.item, item],
    ["rolloutId", name, content.rolloutId],
  ];
  if (upload.adopted !== true)
    pairs.push(
      ["envelope.worker", worker.id, envelope.worker],
      ["envelope.attempt", attempt, envelope.attempt],
    );
  for (const [field, expected, actual] of pairs)
    if (expected !== actual)
      throw refuse(
        "not-bound",
        { field, expected: String(expected), actual: String(actual) },
        `${field} is ${String(actual)}, the claim says ${String(expected)}. Submit what was claimed.`,
      );
}

/** The claim of the same item under which the envelope was made: this claim or an earlier one. */
function claimOf({ claim }: RolloutEnvelope, { item, token }: ClaimKey): ClaimKey {
  const made = parseClaimId(claim);
  return { item, token: made?.item === item ? Math.min(token, made.token) : token };
}

async function checkSigned(
  upload: Upload,
  {
    worker,
    trusts,
    has,
    signatures,
  }: {
    worker: RegisteredWorker;
    trusts: (key: PublicKey) => boolean;
    has: (digest: Digest) => Promise<boolean>;
    signatures: GroupSignatures;
  },
): Promise<void> {
  const { attestation: bytes, blobs, envelope } = upload;
  const attestation = signatures.open(bytes);
  const { signer, subjects } = attestation;
  const isTheirs = upload.adopted === true ? trusts(signer) : signer === worker.key;
  if (!isTheirs || !subjects.includes(envelope))
    throw refuse(
      "bad-signature",
      { signer, expected: worker.key, envelope },
      `the upload is signed by ${signer}, over ${subjects.length} subjects; it needs the key ${worker.key} over ${envelope}.`,
    );
  if (blobs.length === 0) return signatures.check(bytes);
  await checkAttestationAside(attestation);
  const inline = new Set(blobs.map((blob) => digestBytes(blob.kind, blob.bytes)));
  await requireSubjects(subjects, (subject) => subject === envelope || inline.has(subject) || has(subject));
}

/** Requires that every referenced blob is present, and that the numeric columns are valid. */
async function checkReferences(
  parts: UploadParts,
  content: RolloutContent,
  envelope: RolloutEnvelope,
): Promise<void> {
  for (const [i, stream] of content.streams.entries())
    if (stream.level === "token")
      checkTokenColumns(stream, await readTokenColumns(parts.read, stream), `streams[${i}]`);
  for (const digest of content.calls) {
    const call = await parts.open(Call, digest, "call");
    for (const part of Call.references(call)) {
      await parts.need(part);
      if (part.kind === MESSAGE_KIND) openMessage((await parts.read(part.digest))!.bytes, part.digest);
    }
  }
  for (const reference of RolloutContent.references(content)) await parts.need(reference);
  for (const reference of RolloutEnvelope.references(envelope)) await parts.need(reference);
}
