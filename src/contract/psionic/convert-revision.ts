/** Converts psionic-v1 revisions to policy revisions and back. Fields that our record cannot express (an opaque digest
 *  text, a parent without its digest) travel in `origin`. `lost` names the fields that psionic cannot express. */
import { type Digest, digestJson, isDigest } from "../../base/index.ts";
import { type Origin, refuse } from "../codec/index.ts";
import type { CheckpointRef, PolicyRevision } from "../policy/index.ts";
import type { PsionicRevision } from "./schema.ts";

const FORMAT = "psionic-v1" as Origin["format"];

/** psionic names a parent by id alone. Pass the parent to bind its digest too. */
export function fromPsionicRevision(
  revision: PsionicRevision,
  parent?: PsionicRevision,
): Omit<PolicyRevision, "schema"> {
  const kept: KeptTexts = {};
  const knownParent = parent?.revision_id === revision.parent_revision_id ? parent : undefined;
  if (revision.parent_revision_id !== undefined && knownParent === undefined)
    kept.parent_revision_id = revision.parent_revision_id;
  return {
    family: revision.policy_family,
    id: revision.revision_id,
    ...optional("number", revision.revision_number),
    digest: keepDigest(kept, "policy_digest", revision.policy_digest),
    ...optional(
      "parent",
      knownParent && { id: knownParent.revision_id, digest: toDigest(knownParent.policy_digest) },
    ),
    ...optional("checkpoint", revision.checkpoint && fromCheckpoint(revision.checkpoint, kept)),
    producedAtMs: toTime(revision.produced_at_ms, "produced_at_ms"),
    ...originOf(kept),
  };
}

export function toPsionicRevision(revision: PolicyRevision): { revision: PsionicRevision; lost: string[] } {
  const kept = keptIn(revision.origin);
  const checkpoint = revision.checkpoint && toCheckpoint(revision.checkpoint, kept);
  const lost = revision.training === undefined ? [] : ["training"];
  // The original requires the cluster that wrote a checkpoint; a single process has none.
  if (revision.checkpoint !== undefined && checkpoint === undefined) lost.push("checkpoint");
  const parent = revision.parent?.id ?? (kept.parent_revision_id as PsionicRevision["parent_revision_id"]);
  return {
    lost,
    revision: {
      policy_family: revision.family,
      revision_id: revision.id,
      ...optional("revision_number", revision.number),
      policy_digest: restoreDigest(kept, "policy_digest", revision.digest),
      ...optional("parent_revision_id", parent),
      ...optional("checkpoint", checkpoint),
      produced_at_ms: BigInt(revision.producedAtMs),
    },
  };
}

/** `sha256:<hex>` and bare hex keep their meaning. Any other text is hashed, and the text is kept beside the digest. */
function toDigest(text: string): Digest {
  if (isDigest(text)) return text;
  if (/^[0-9a-f]{64}$/.test(text)) return `sha256:${text}` as Digest;
  return digestJson("rollbook.psionic-digest.v1", text);
}

/** Original texts by their psionic field name. */
export type KeptTexts = Record<string, string>;

export function keepDigest(kept: KeptTexts, field: string, text: string): Digest {
  const digest = toDigest(text);
  if (digest !== text) kept[field] = text;
  return digest;
}

export function restoreDigest(kept: Readonly<KeptTexts>, field: string, digest: Digest): string {
  const text = kept[field] ?? digest;
  if (toDigest(text) === digest) return text;
  throw refuse(
    "digest-mismatch",
    { field: `origin.fields.${field}`, expected: digest, actual: toDigest(text) },
    `origin.fields.${field} is ${JSON.stringify(text)}, which does not map to ${digest}. Convert the original again.`,
  );
}

export function originOf(kept: KeptTexts): { origin?: Origin } {
  return Object.keys(kept).length === 0 ? {} : { origin: { format: FORMAT, fields: kept } };
}

export function keptIn(origin: Origin | undefined): Readonly<KeptTexts> {
  if (origin?.format !== FORMAT) return {};
  const texts = Object.entries(origin.fields).filter(([, value]) => typeof value === "string");
  return Object.fromEntries(texts) as KeptTexts;
}

export function toTime(ms: bigint, field: string): number {
  if (ms <= BigInt(Number.MAX_SAFE_INTEGER)) return Number(ms);
  throw refuse(
    "bad-record",
    { field, value: String(ms) },
    `${field} is ${ms}, which is not a time in milliseconds.`,
  );
}

/** exactOptionalPropertyTypes distinguishes an absent member from an undefined member. */
function optional<Name extends string, T>(name: Name, value: T | undefined): { [K in Name]?: T } {
  return value === undefined ? {} : ({ [name]: value } as { [K in Name]?: T });
}

function fromCheckpoint(from: NonNullable<PsionicRevision["checkpoint"]>, kept: KeptTexts): CheckpointRef {
  const keep = (name: "manifest_digest" | "object_digest" | "cluster_state_digest" | "topology_digest") =>
    keepDigest(kept, `checkpoint.${name}`, from[name]);
  return {
    family: from.checkpoint_family,
    streamId: from.stream_id,
    manifestDigest: keep("manifest_digest"),
    objectDigest: keep("object_digest"),
    startedAtMs: toTime(from.started_at_ms, "checkpoint.started_at_ms"),
    ...optional("ref", from.checkpoint_ref),
    ...optional("step", from.step),
    ...optional(
      "durableAtMs",
      from.durable_at_ms === undefined ? undefined : toTime(from.durable_at_ms, "checkpoint.durable_at_ms"),
    ),
    writerNodeId: from.writer_node_id,
    membershipEpoch: from.membership_epoch,
    clusterStateDigest: keep("cluster_state_digest"),
    topologyDigest: keep("topology_digest"),
  };
}

function toCheckpoint(from: CheckpointRef, kept: Readonly<KeptTexts>): PsionicRevision["checkpoint"] {
  const { writerNodeId, membershipEpoch, clusterStateDigest, topologyDigest } = from;
  if (
    writerNodeId === undefined ||
    membershipEpoch === undefined ||
    clusterStateDigest === undefined ||
    topologyDigest === undefined
  )
    return undefined;
  const restore = (name: string, digest: Digest) => restoreDigest(kept, `checkpoint.${name}`, digest);
  return {
    checkpoint_family: from.family,
    stream_id: from.streamId,
    manifest_digest: restore("manifest_digest", from.manifestDigest),
    object_digest: restore("object_digest", from.objectDigest),
    writer_node_id: writerNodeId,
    membership_epoch: membershipEpoch,
    cluster_state_digest: restore("cluster_state_digest", clusterStateDigest),
    topology_digest: restore("topology_digest", topologyDigest),
    started_at_ms: BigInt(from.startedAtMs),
    ...optional("checkpoint_ref", from.ref),
    ...optional("step", from.step),
    ...optional("durable_at_ms", from.durableAtMs === undefined ? undefined : BigInt(from.durableAtMs)),
  };
}
