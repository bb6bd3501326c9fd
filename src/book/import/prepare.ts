/** Converts one JSON value to sealed records: rollout drafts, other records by their schema, psionic-v1 artifacts.
 *  In: a value. Out: blobs in writing order. Pure; does not read the book. */
import { type Digest, isObject, type Json, RollbookError, type WideJson } from "../../base/index.ts";
import {
  Assignment,
  Attestation,
  checkAttestation,
  decodeWire,
  EnvironmentPackage,
  Feedback,
  isNewerVersion,
  type LogprobKind,
  loggedPolicy,
  NEEDS_NEWER,
  PolicyRevision,
  parseRolloutDraft,
  QuarantineRelease,
  RECORD_TYPES,
  Receipt,
  type RecordType,
  type RolloutContent,
  RolloutDraft,
  refuse,
  type Sealed,
  type SealedBlob,
  seal,
  sealRollout,
  Task,
  Verdict,
} from "../../contract/index.ts";
import {
  checkPsionicArtifact,
  decodePsionic,
  fromPsionicArtifact,
  fromPsionicRevision,
  psionicArtifact,
  psionicRevision,
} from "../../contract/psionic/index.ts";

import { CHAT_LOG_FAMILY, chatLogDraft, chatLogFault, isChatLog } from "../../convert/chat/index.ts";

/** Record types that a file may contain, sorted so that none refers to a later one. The others (batches, ledgers,
 *  manifests) are derived from these. */
const IMPORTABLE = [
  PolicyRevision,
  EnvironmentPackage,
  Task,
  Assignment,
  RolloutDraft,
  Feedback,
  Verdict,
  QuarantineRelease,
  Receipt,
  Attestation,
] as unknown as readonly RecordType[];

export const IMPORTABLE_KINDS: readonly string[] = IMPORTABLE.map((type) => type.kind);

export interface Prepared {
  /** Digest of the record that stands for the whole: an envelope, or the record itself. */
  readonly root: Digest;
  /** Sealed records whose references the book must hold. */
  readonly records: readonly Sealed<unknown>[];
  readonly content?: Sealed<RolloutContent>;
  readonly blobs: readonly SealedBlob[];
}

/** Facts that psionic-v1 lacks and the import must provide. */
export interface PsionicAnswers {
  readonly logprobKind?: LogprobKind | undefined;
  readonly dataSource?: "real" | "synthetic" | undefined;
}

/** Usually returns one item; a psionic artifact also carries its revision. */
export function prepare(
  item: { where: string; value: Json; wide(): WideJson },
  answers: PsionicAnswers,
): Prepared[] {
  const { where, value } = item;
  const keys = isObject(value) ? value : {};
  const kind = (keys as { schema?: unknown }).schema;
  if (kind === undefined && "artifact_id" in keys) return psionicRollout(item.wide(), where, answers);
  if (kind === undefined && "policy_family" in keys && "revision_id" in keys)
    return [
      fromRecord(
        seal(PolicyRevision, fromPsionicRevision(decodePsionic(psionicRevision, item.wide(), where))),
      ),
    ];
  if (kind === undefined && isChatLog(value))
    return [named(where, () => chatLogRollout(value, where, answers))];
  if (kind === RolloutDraft.kind) return [named(where, () => fromRollout(parseRolloutDraft(value, where)))];
  const type = IMPORTABLE.find((each) => each.kind === kind);
  if (kind === undefined && "model_chosen" in keys) throw decisionRow(where);
  const chatFault = kind === undefined ? chatLogFault(value) : undefined;
  if (chatFault !== undefined)
    throw refuse(
      "bad-record",
      { where },
      `${where}: this looks like a line of a chat log, but ${chatFault}. A line needs both bodies, request and response.`,
    );
  if (type === undefined) throw unknownKind(kind, where);
  const record = decodeWire(type, value, where);
  if (type.kind === Attestation.kind) named(where, () => checkAttestation(record as Attestation));
  return [fromRecord(seal(type, record as Record<string, unknown>))];
}

function psionicRollout(value: WideJson, where: string, answers: PsionicAnswers): Prepared[] {
  const { logprobKind, dataSource } = answers;
  if (logprobKind === undefined || dataSource === undefined) {
    throw new RollbookError(
      "missing-answer",
      { where },
      `${where}: psionic-v1 does not say what its logprobs and data are. Add --logprob-kind sampling|model and --data-source real|synthetic.`,
    );
  }
  return named(where, () => {
    const artifact = checkPsionicArtifact(decodePsionic(psionicArtifact, value, where));
    const { draft, revision } = fromPsionicArtifact(artifact, { logprobKind, dataSource });
    return [fromRecord(seal(PolicyRevision, revision)), fromRollout(draft)];
  });
}

function chatLogRollout(value: Json, where: string, { dataSource }: PsionicAnswers): Prepared {
  const policy = loggedPolicy(CHAT_LOG_FAMILY);
  const rollout = fromRollout(chatLogDraft(value, { where, dataSource }));
  return { ...rollout, records: [policy, ...rollout.records], blobs: [policy, ...rollout.blobs] };
}

function fromRollout(draft: RolloutDraft): Prepared {
  const { content, envelope, blobs } = sealRollout(draft);
  return { root: envelope.digest, records: [content, envelope], content, blobs };
}

function fromRecord(record: Sealed<unknown>): Prepared {
  return { root: record.digest, records: [record], blobs: [record] };
}

/** Errors of sealing name the field; this function adds the place in the file. */
function named<T>(where: string, make: () => T): T {
  try {
    return make();
  } catch (error) {
    if (!(error instanceof RollbookError) || error.message.startsWith(where)) throw error;
    throw new RollbookError(error.code, { where, ...error.fields }, `${where}: ${error.message}`, {
      cause: error,
    });
  }
}

function decisionRow(where: string): RollbookError {
  const file = where.replace(/:\d+$/, "");
  return refuse(
    "unknown-schema",
    { where },
    `${where}: this is a row of a routing dataset. Import it with \`rollbook data import ${file}\`.`,
  );
}

function unknownKind(kind: unknown, where: string): RollbookError {
  const found =
    kind === undefined ? "there is no schema field" : `schema is ${JSON.stringify(kind)?.slice(0, 80)}`;
  const known = [...IMPORTABLE_KINDS, ...RECORD_TYPES.map((type) => type.kind)];
  if (known.some((each) => isNewerVersion(kind, each)))
    return refuse("unknown-schema", { where, actual: kind }, `${where}: ${found}. ${NEEDS_NEWER}`);
  return refuse(
    "unknown-schema",
    { where, actual: kind },
    `${where}: ${found}. Give it one of ${IMPORTABLE_KINDS.join(", ")}. Import also reads psionic-v1 artifacts and revisions, and chat logs with request and response.`,
  );
}
