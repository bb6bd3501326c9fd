/** Admits rollouts of a book and keeps the verdicts, which everything that learns obeys.
 *  In: an open book, names, a target or a validator. Out: what was said of each. Verdicts and releases are sealed records. */
import { parseId, RollbookError } from "../../base/index.ts";
import { PolicyRevision, type Release, type Sealed, Verdict } from "../../contract/index.ts";
import { FRESHNESS_PROFILES, type FreshnessBudgets } from "../../keep/admit/index.ts";
import { readRecord } from "../../store/index.ts";
import {
  type Artifact,
  type BookIndex,
  everyArtifact,
  type OpenBook,
  resolveArtifact,
  resolveRevision,
} from "../open/index.ts";
import {
  type AdmissionResult,
  type AdmitRequest,
  admitInBook,
  releaseInBook,
  validateInBook,
} from "./admit.ts";

interface Chosen {
  /** Ids or digests (default: all of the book). */
  readonly artifacts?: readonly string[] | undefined;
}

/** Freshness against a policy revision: how far their policy has drifted from it, how old policy and rollout are. */
export async function admitRollouts(
  book: OpenBook,
  request: Chosen & {
    /** By id or digest. */
    readonly target: string;
    /** Default: a drift of 3 accepted and 5 quarantined. */
    readonly budgets?: FreshnessBudgets | undefined;
  },
): Promise<AdmissionResult[]> {
  const { index, ...about } = await requestOn(book, request);
  const { digest } = resolveRevision(index, request.target);
  const target = await readRecord(book.store, PolicyRevision, digest);
  return admitInBook({ index, ...about, target, budgets: request.budgets ?? FRESHNESS_PROFILES.default });
}

/** Proofs, times, token counts and copies. Of all rollouts, only those that this validator has not checked yet. */
export async function validateRollouts(
  book: OpenBook,
  request: Chosen & {
    /** The name under which it signs verdicts (default: rollbook). */
    readonly validator?: string | undefined;
  } = {},
): Promise<AdmissionResult[]> {
  const validator = parseId(request.validator ?? "rollbook", "--validator");
  const about = await requestOn(book, request);
  const artifacts = isNamed(request) ? about.artifacts : unchecked(about.index, about.artifacts, validator);
  return validateInBook({ ...about, artifacts, validator });
}

/** Lets a quarantined rollout into batches, by name and with a reason. Undoes the verdicts that stand now, no later one. */
export async function releaseRollout(
  book: OpenBook,
  name: string,
  { reason, by = "owner" }: { reason: string; by?: string },
): Promise<{ rolloutId: string; releases: readonly Sealed<Release>[] }> {
  const { store, clock, signer } = book;
  const index = await book.index();
  const { content } = resolveArtifact(index, name);
  const releases = await releaseInBook({ store, index, nowMs: clock.nowMs(), signer }, content.digest, {
    ...{ by: parseId(by, "--by"), reason },
  });
  if (releases.length > 0) return { rolloutId: content.id!, releases };
  throw new RollbookError(
    "not-quarantined",
    { artifact: content.id, content: content.digest },
    `no verdict quarantines ${content.id} now: there is nothing to release. \`rollbook artifact show ${content.id}\` lists its verdicts.`,
  );
}

async function requestOn(book: OpenBook, chosen: Chosen): Promise<AdmitRequest> {
  const { store, clock, signer } = book;
  const index = await book.index();
  const artifacts = isNamed(chosen)
    ? chosen.artifacts!.map((each) => resolveArtifact(index, each))
    : everyArtifact(index);
  return { store, index, artifacts, nowMs: clock.nowMs(), signer };
}

function isNamed({ artifacts = [] }: Chosen): boolean {
  return artifacts.length > 0;
}

function unchecked(index: BookIndex, artifacts: readonly Artifact[], validator: string): Artifact[] {
  const checked = new Set(
    index
      .ofKind(Verdict.kind)
      .filter(({ fields }) => fields.validator === validator)
      .map(({ fields }) => fields.subject),
  );
  return artifacts.filter(({ content }) => !checked.has(content.digest));
}
