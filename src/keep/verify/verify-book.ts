/** Verifies a whole book in one sequential pass, or one record with everything it depends on. */
import { type Digest, given, isDigest, isRollbookError, reasonOf } from "../../base/index.ts";
import { Attestation, Manifest, openRecord, recordType, TrainerBatch } from "../../contract/index.ts";
import type { BlobStore, Finding, ScanItem } from "../../store/index.ts";
import { reassemble } from "../batch/index.ts";
import type { Problem, VerifyReport } from "./report.ts";
import { isLookedInto, Verifier } from "./verifier.ts";

export interface VerifyOptions {
  /** Keys whose signatures count as trusted. */
  trustedKeys?: Iterable<string>;
  /** Digest of a head that the book must still hold, with everything the head names. */
  expect?: Digest;
  onProgress?: (bytes: number) => void;
}

/** Verifies every blob of the book. */
export async function verifyBook(
  store: Pick<BlobStore, "scanRuns" | "get">,
  options: VerifyOptions = {},
): Promise<VerifyReport> {
  const verifier = new Verifier({ trustedKeys: options.trustedKeys ?? [], whole: true });
  const batches: Digest[] = [];
  const large: SeenLarge[] = [];
  let read = 0;
  for await (const run of store.scanRuns()) {
    for (const item of run) {
      if (item.type === "damage") {
        if (!isOwnReplacement(item.finding, verifier)) verifier.report(describeDamage(item.finding));
        continue;
      }
      const { digest, kind, location } = item;
      if (item.type === "large") large.push(item);
      else {
        const { hex, bytes } = item;
        verifier.accept({ digest, hex, kind, bytes, byteLength: location.length, where: location });
      }
      if (kind === TrainerBatch.kind) batches.push(digest);
      read += location.length;
      options.onProgress?.(read);
    }
    for (const { digest, kind, location } of large.splice(0)) {
      const seen = { digest, hex: hexOf(digest), kind, byteLength: location.length, where: location };
      verifier.accept({ ...seen, bytes: await bytesOfLarge(store, seen) });
    }
  }
  for (const digest of batches) await checkBatch(store, digest, verifier);
  if (options.expect !== undefined) verifier.expect(options.expect);
  return verifier.finish((digest) => store.get(digest));
}

/** A pack that was replaced under another key than that of its head is accepted if the reader trusts that key. */
function isOwnReplacement({ code, actual }: Finding, verifier: Verifier): boolean {
  return code === "foreign-replacement" && actual !== undefined && verifier.isTrusted(actual);
}

function hexOf(digest: Digest): string {
  return digest.slice("sha256:".length);
}

type SeenLarge = Extract<ScanItem, { type: "large" }>;

/** Records and columns of any size are read and examined; for other blobs (a checkpoint) the digest is enough. */
async function bytesOfLarge(
  store: Pick<BlobStore, "get">,
  { digest, kind }: { digest: Digest; kind: string },
): Promise<Uint8Array | undefined> {
  return isLookedInto(kind) ? (await store.get(digest))?.bytes : undefined;
}

/** Damaged bytes have no reliable name; the expected digest is the best one available. */
function describeDamage({ code, file, offset, expected, kind, message }: Finding): Problem {
  const where = `${file} at ${offset}`;
  return isDigest(expected)
    ? { code, record: expected, ...given({ kind }), digest: expected, file, where, message }
    : { code, record: where, file, where, message };
}

/** Verifies one record and everything reachable from it. `attestationsOf` finds signatures, `envelopesOf` finds envelopes,
 *  and `tombstonesOf` finds tombstones of erased records: these point to the record, not from it. */
export async function verifyRecord(
  store: Pick<BlobStore, "get">,
  root: Digest,
  options: VerifyOptions & {
    attestationsOf?: (subject: Digest) => Iterable<Digest>;
    envelopesOf?: (subject: { digest: Digest; kind: string }) => Iterable<Digest>;
    /** Called for every visited blob. */
    onBlob?: (blob: { digest: Digest; kind: string }) => void;
    tombstonesOf?: (erased: Digest) => Iterable<Digest>;
  } = {},
): Promise<VerifyReport> {
  const verifier = new Verifier({ trustedKeys: options.trustedKeys ?? [], whole: false });
  const seen = new Set<Digest>([root]);
  const ahead: Digest[] = [root];
  const batches: Digest[] = [];
  for (let digest = ahead.pop(); digest !== undefined; digest = ahead.pop()) {
    const found = await readChecked(store, digest, verifier);
    if (found !== undefined) options.onBlob?.({ digest, kind: found.kind });
    if (found?.kind === TrainerBatch.kind) batches.push(digest);
    const back = found === undefined ? options.tombstonesOf : options.attestationsOf;
    const around = found === undefined ? [] : (options.envelopesOf?.({ digest, kind: found.kind }) ?? []);
    for (const next of [...(found?.references ?? []), ...(back?.(digest) ?? []), ...around]) {
      if (!seen.has(next)) ahead.push(next);
      seen.add(next);
    }
  }
  for (const digest of batches) await checkBatch(store, digest, verifier);
  return verifier.finish((digest) => store.get(digest));
}

/** Passes a blob to the verifier and returns its references. */
async function readChecked(
  store: Pick<BlobStore, "get">,
  digest: Digest,
  verifier: Verifier,
): Promise<{ kind: string; references: Digest[] } | undefined> {
  let blob: Awaited<ReturnType<BlobStore["get"]>>;
  try {
    blob = await store.get(digest);
  } catch (error) {
    const { kind, file } = isRollbookError(error) ? (error.fields as Partial<Finding>) : {};
    const damage = given({ kind, file });
    const message = reasonOf(error);
    verifier.report({ code: "digest-mismatch", record: digest, digest, ...damage, where: digest, message });
    return undefined;
  }
  if (blob === undefined) return undefined;
  const { kind, bytes } = blob;
  verifier.accept({ digest, hex: hexOf(digest), kind, bytes, byteLength: bytes.length, where: digest });
  return { kind, references: leadsTo(kind, bytes, digest) };
}

function leadsTo(kind: string, bytes: Uint8Array, digest: Digest): Digest[] {
  const type = recordType(kind);
  // An attestation names its whole group; only the subject that led here matters.
  if (type === undefined || kind === Attestation.kind) return [];
  try {
    return type.references(openRecord(type, bytes, digest)).map((reference) => reference.digest);
  } catch {
    return []; // the verifier has reported it
  }
}

/** A batch must follow from its manifest: assembled again, it has the same digest. */
async function checkBatch(store: Pick<BlobStore, "get">, digest: Digest, verifier: Verifier): Promise<void> {
  const report = (message: string) =>
    verifier.report({
      code: "not-reproducible",
      record: `trainer-batch ${digest.slice(7, 19)}`,
      digest,
      where: digest,
      message,
    });
  try {
    const blob = await store.get(digest);
    const batch = openRecord(TrainerBatch, blob!.bytes, digest);
    const erased = await countErased(store, batch, verifier);
    if (erased !== undefined) {
      verifier.noteErasedBatch({ batch: digest, ...erased });
      return;
    }
    const again = await reassemble((each) => store.get(each), batch);
    if (again.digest !== digest) report(`assembled again from its manifest the batch is ${again.digest}`);
  } catch (error) {
    report(`cannot be assembled again: ${reasonOf(error)}`);
  }
}

/** Number of erased artifacts in a batch's manifest; undefined if there are none. */
async function countErased(
  store: Pick<BlobStore, "get">,
  batch: TrainerBatch,
  verifier: Verifier,
): Promise<{ erased: number; artifacts: number } | undefined> {
  const blob = await store.get(batch.manifest);
  if (blob === undefined) return undefined;
  const { artifacts, feedback } = openRecord(Manifest, blob.bytes, batch.manifest);
  const erased = artifacts.filter(({ content }) => verifier.isErased(content)).length;
  const isCut = erased > 0 || feedback.some((digest) => verifier.isErased(digest));
  return isCut ? { erased, artifacts: artifacts.length } : undefined;
}
