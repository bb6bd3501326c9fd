/** A trained policy on disk: a folder with `policy.safetensors` and `revision.json`, the sealed PolicyRevision.
 *  In: a model and the facts of its training. Out: the folder, written in one step; and the model read back, verified.
 *  The revision's digest is the digest of the safetensors bytes, so the record proves the weights. The weights name
 *  the feature spec. */
import { existsSync, mkdirSync, readFileSync, renameSync, rmSync } from "node:fs";
import { basename, dirname, join, resolve } from "node:path";
import {
  canonicalize,
  type Digest,
  digestBytes,
  digestJson,
  isRollbookError,
  type Json,
  parseId,
  parseJson,
  RollbookError,
} from "../base/index.ts";
import {
  FloorPromise,
  openRecord,
  PolicyRevision,
  type RecordOf,
  type RecordType,
  type Sealed,
  seal,
  succeeding,
} from "../contract/index.ts";
import { makeDirectory, syncDirectory, writeAtomically } from "../store/index.ts";
import { type AnyFeatureSpec, digestFeatureSpec, parseAnySpec } from "./feature-spec.ts";
import { decodeSafetensors, encodeSafetensors, type Tensors } from "./safetensors.ts";

/** The kind under which checkpoint bytes are hashed and stored. */
export const CHECKPOINT_KIND = "rollbook.checkpoint.v1";
const POLICY_KINDS = [
  ...(["softmax-linear", "ucb1", "linucb", "thompson-beta", "thompson-linear", "value"] as const),
  ...(["mlp-greedy", "mlp-softmax"] as const),
] as const;
export type PolicyKind = (typeof POLICY_KINDS)[number];

export interface PolicyModel {
  readonly kind: PolicyKind;
  readonly spec: AnyFeatureSpec;
  /** Ids of the candidates that the policy knows, in the order of its tensors. */
  readonly arms: readonly string[];
  /** Algorithm, data and options of the training: everything but the seed. */
  readonly config: { readonly [key: string]: Json };
  readonly settings: Readonly<Record<string, number>>;
  readonly tensors: Tensors;
}

export type TrainingDataset = NonNullable<NonNullable<PolicyRevision["training"]>["datasets"]>[number];

interface RevisionFacts {
  readonly family: string;
  readonly id: string;
  readonly parent?: PolicyRevision;
  /** Digests of trainer batches. */
  readonly batches: readonly Digest[];
  /** Training data from outside a book. */
  readonly datasets?: readonly TrainingDataset[];
  readonly seed: bigint;
  readonly steps?: number;
  readonly producedAtMs: number;
}

export interface Checkpoint {
  readonly model: PolicyModel;
  readonly bytes: Uint8Array;
  readonly revision: Sealed<PolicyRevision>;
  /** The confidence floor given to the policy, and the promise for that floor. */
  readonly promise?: Sealed<FloorPromise>;
}

const WEIGHTS = "policy.safetensors";
const REVISION = "revision.json";
const FLOOR = "floor.json";

export function encodeModel({ tensors, ...head }: PolicyModel): Uint8Array {
  return encodeSafetensors({
    tensors,
    metadata: { rollbook: canonicalize({ schema: CHECKPOINT_KIND, ...head }) },
  });
}

export function decodeModel(bytes: Uint8Array, where: string): PolicyModel {
  const { tensors, metadata } = decodeSafetensors(bytes, where);
  const head = parseJson(metadata.rollbook ?? "null", where) as Record<string, Json> | null;
  if (head?.schema !== CHECKPOINT_KIND || !POLICY_KINDS.includes(head.kind as PolicyKind))
    throw new RollbookError(
      "bad-checkpoint",
      { where },
      `${where}: not a policy checkpoint (schema ${JSON.stringify(head?.schema ?? null)}, kind ${JSON.stringify(head?.kind ?? null)}). Name a checkpoint written by \`rollbook train\`.`,
    );
  const { schema: _, ...model } = head as unknown as PolicyModel & { schema: string };
  return { ...model, spec: parseAnySpec(model.spec, where), tensors };
}

/** The model with its sealed revision. Pure: the same model and facts give the same digests. */
export function sealCheckpoint(model: PolicyModel, facts: RevisionFacts): Checkpoint {
  const bytes = encodeModel(model);
  const digest = digestBytes(CHECKPOINT_KIND, bytes);
  const family = parseId(facts.family, "family");
  const { parent, seed, steps, producedAtMs } = facts;
  const revision = seal(PolicyRevision, {
    family,
    id: parseId(facts.id, "revision id"),
    digest,
    ...succeeding(parent),
    checkpoint: {
      family,
      streamId: parseId(model.kind),
      manifestDigest: digestFeatureSpec(model.spec),
      objectDigest: digest,
      startedAtMs: producedAtMs,
    },
    training: {
      batches: [...facts.batches],
      ...(facts.datasets === undefined || facts.datasets.length === 0
        ? {}
        : { datasets: [...facts.datasets] }),
      configDigest: digestConfig(model.config),
      seed,
      ...(steps === undefined ? {} : { steps }),
    },
    producedAtMs,
  });
  return { model, bytes, revision };
}

/** Writes to a temporary folder beside the target and renames it, so a crash leaves the whole folder or none.
 *  Never overwrites. `mode`: permissions of the files (default: those of the process). */
export function writeCheckpoint(
  folder: string,
  { bytes, revision, promise }: Checkpoint,
  { mode }: { readonly mode?: number | undefined } = {},
): void {
  if (existsSync(folder))
    throw new RollbookError("exists", { folder }, `${folder} already exists. Name another folder.`);
  const temp = `${folder}.tmp-${process.pid}`;
  makeDirectory(dirname(folder));
  rmSync(temp, { recursive: true, force: true });
  mkdirSync(temp);
  try {
    const write = (name: string, content: Uint8Array) =>
      writeAtomically(join(temp, name), content, join(temp, `${name}.part`), mode);
    write(WEIGHTS, bytes);
    write(REVISION, revision.bytes);
    if (promise !== undefined) write(FLOOR, promise.bytes);
    renameSync(temp, folder);
  } catch (error) {
    rmSync(temp, { recursive: true, force: true });
    throw error;
  }
  syncDirectory(dirname(folder));
}

/** `spec`: the features that the caller will supply. A checkpoint trained on other features is refused. */
export function readCheckpoint(folder: string, options: { spec?: AnyFeatureSpec } = {}): Checkpoint {
  const path = join(folder, WEIGHTS);
  const bytes = readPart(path);
  const record = openPart(PolicyRevision, join(folder, REVISION));
  const checkpoint = openCheckpoint(bytes, record, path);
  if (options.spec !== undefined) requireSpec(checkpoint.model, options.spec, path);
  const promise = readPromise(join(folder, FLOOR), record);
  return { ...checkpoint, ...(promise === undefined ? {} : { promise }) };
}

/** Rollbook wrote the file, so a user has nothing to correct in it. */
function openPart<T extends RecordType>(type: T, path: string): RecordOf<T> {
  const bytes = readPart(path);
  try {
    return openRecord(type, bytes, path);
  } catch (cause) {
    if (!isRollbookError(cause, "bad-json") && !isRollbookError(cause, "not-canonical")) throw cause;
    throw new RollbookError(
      "bad-checkpoint",
      { where: path },
      `${path}: the file is damaged or was edited. Restore the file or train again.`,
      { cause },
    );
  }
}

/** Weights and their revision, from any storage, checked against each other. */
export function openCheckpoint(bytes: Uint8Array, record: PolicyRevision, where: string): Checkpoint {
  const actual = digestBytes(CHECKPOINT_KIND, bytes);
  if (actual !== record.digest)
    throw new RollbookError(
      "digest-mismatch",
      { path: where, expected: record.digest, actual },
      `${where}: the bytes hash to ${actual}, revision ${record.id} says ${record.digest}. Restore the file or train again.`,
    );
  const model = decodeModel(bytes, where);
  checkFacts(model, record, where);
  return { model, bytes, revision: seal(PolicyRevision, record) };
}

function digestConfig(config: PolicyModel["config"]): Digest {
  return digestJson("rollbook.training-config.v1", config);
}

export function requireSpec(model: PolicyModel, spec: AnyFeatureSpec, where: string): void {
  const [actual, expected] = [digestFeatureSpec(model.spec), digestFeatureSpec(spec)];
  if (actual === expected) return;
  const [wanted, own] = [{ ...spec }, { ...model.spec }] as Record<string, Json | undefined>[];
  const differing = Object.keys(wanted!).filter(
    (key) => canonicalize(wanted![key] ?? null) !== canonicalize(own![key] ?? null),
  );
  throw new RollbookError(
    "other-feature-spec",
    { where, expected, actual, differing },
    `${where}: trained on the feature spec ${actual}, asked for ${expected}; they differ in ${differing.join(", ")}. Train again with this spec, or use the checkpoint's own.`,
  );
}

function checkFacts(model: PolicyModel, record: PolicyRevision, where: string): void {
  const claims: [string, Digest | undefined, Digest][] = [
    ["checkpoint.manifestDigest", record.checkpoint?.manifestDigest, digestFeatureSpec(model.spec)],
    ["training.configDigest", record.training?.configDigest, digestConfig(model.config)],
  ];
  for (const [field, claimed, actual] of claims) {
    if (claimed === undefined || claimed === actual) continue;
    throw new RollbookError(
      "digest-mismatch",
      { where, field, expected: claimed, actual },
      `${where}: ${field} of the revision is ${claimed}, the checkpoint gives ${actual}. Restore both files.`,
    );
  }
}

/** Reads the promise. A promise for another policy than the one in the folder is refused. */
function readPromise(path: string, { id, digest }: PolicyRevision): Sealed<FloorPromise> | undefined {
  if (!existsSync(path)) return undefined;
  const promise = openPart(FloorPromise, path);
  if (promise.policy.digest === digest) return seal(FloorPromise, promise);
  throw new RollbookError(
    "digest-mismatch",
    { path, expected: digest, actual: promise.policy.digest },
    `${path}: the floor was promised for ${promise.policy.id} (${promise.policy.digest}), this is ${id}. Calibrate it again.`,
  );
}

function readPart(path: string): Uint8Array {
  try {
    return readFileSync(path);
  } catch (cause) {
    throw new RollbookError(
      "no-checkpoint",
      { path },
      existsSync(dirname(path))
        ? `${resolve(dirname(path))} is not a checkpoint: ${basename(path)} cannot be read there. Name the folder that \`rollbook train\` wrote.`
        : `the folder ${dirname(path)} does not exist. Name the folder that \`rollbook train\` wrote.`,
      { cause },
    );
  }
}
