/** Renders a verification report for a terminal. It answers two separate questions: do the records agree with
 *  themselves, and did a trusted key sign them? */

import { type Digest, isDigest } from "../base/index.ts";
import type { Verified } from "../book/maintain/index.ts";
import type { CatalogDifference } from "../book/open/index.ts";
import { RolloutEnvelope } from "../contract/index.ts";
import type { Problem, VerifyReport } from "../keep/verify/index.ts";
import { page, plural, short, thousands } from "./format.ts";

const MOST_PROBLEMS = 50;
const MOST_OUTSIDE = 5;

export function renderVerifyReport(
  { what, report, damagedRollouts = [], catalog, catalogMade, reached }: Verified,
  {
    names,
    expected,
  }: { readonly names: ReadonlyMap<string, string>; readonly expected?: Digest | undefined },
): string {
  const { problems, trust } = report;
  const lines = [
    `${what}: ${plural(report.blobs, "blob")}, ${plural(report.bytes, "byte")}`,
    ...reachedLines(reached, report),
    problems.length === 0
      ? `self-consistent: yes, everything that was checked fits${report.erased.tombstones.length === 0 ? "" : ", but for what was erased"}`
      : `self-consistent: NO, ${plural(problems.length, "problem")}`,
    ...problems.slice(0, MOST_PROBLEMS).map(problemText),
    ...(problems.length > MOST_PROBLEMS
      ? [`  … and ${thousands(problems.length - MOST_PROBLEMS)} more (--json lists all)`]
      : []),
    ...damagedLines(damagedRollouts),
    `signed: ${thousands(trust.signed)} of ${plural(trust.artifacts, "artifact")}, ${thousands(trust.trusted)} by a trusted key`,
    ...otherRoots(trust.roots),
    ...trust.signers.map(
      ({ key, artifacts, trusted }) =>
        `  ${key} ${plural(artifacts, "artifact")}, ${trusted ? `trusted (${names.get(key)})` : "not trusted"}`,
    ),
    ...sameIdLines(report),
    ...(reached === undefined ? [headLine(report.heads)] : []),
    ...(expected === undefined || problems.some(({ code }) => code === "head-missing")
      ? []
      : [`expected head: found, ${expected}`]),
    ...erasedLines(report),
    ...outsideLines(report),
    ...(catalog === undefined ? [] : catalogLines(catalog)),
    ...madeLines(catalogMade),
    ...(report.unrecordedRevisions.length === 0
      ? []
      : [`revisions without a record: ${report.unrecordedRevisions.slice(0, 20).join(", ")}`]),
  ];
  return page(lines);
}

function damagedLines(rollouts: readonly string[]): string[] {
  if (rollouts.length === 0) return [];
  const left = rollouts.length - MOST_PROBLEMS;
  const more = left > 0 ? ` and ${thousands(left)} more (--json lists all)` : "";
  return [`rollouts with a problem: ${rollouts.slice(0, MOST_PROBLEMS).join(", ")}${more}`];
}

function outsideLines({ outside }: VerifyReport): string[] {
  if (outside.length === 0) return [];
  const named = new Map<Digest, { first: (typeof outside)[number]; by: Set<string> }>();
  for (const each of outside) {
    const known = named.get(each.digest) ?? { first: each, by: new Set() };
    known.by.add(each.record);
    named.set(each.digest, known);
  }
  const left = named.size - MOST_OUTSIDE;
  return [
    "not in the book, so not checked:",
    ...[...named].slice(0, MOST_OUTSIDE).map(([digest, { first, by }]) => {
      const more = by.size === 1 ? "" : ` and ${plural(by.size - 1, "other record")}`;
      return `  ${first.what} (${short(digest)}), named by ${namerText(first)}${more}`;
    }),
    ...(left > 0 ? [`  … and ${thousands(left)} more (--json lists all)`] : []),
  ];
}

function namerText({ kind, record }: VerifyReport["outside"][number]): string {
  const name = isDigest(record) ? short(record) : record;
  return `${kindName(kind).replaceAll("-", " ")} ${name}`;
}

function sameIdLines({ sameId }: VerifyReport): string[] {
  return sameId
    .slice(0, 10)
    .map(
      ({ rollout, contents }) => `sealed more than once: ${rollout} is ${contents.map(short).join(" and ")}`,
    );
}

/** Heads cover the whole book: a report on one record does not check them, and has no such line. */
function headLine({ count, latest }: VerifyReport["heads"]): string {
  if (latest === undefined)
    return "heads: none, so a missing pack would not be noticed. `rollbook head` writes one";
  return `heads: ${thousands(count)} checked; the newest is ${latest.digest}, signed at ${new Date(latest.atMs).toISOString()}`;
}

/** All other records that must be signed; kinds with missing signatures are named. */
function otherRoots(roots: VerifyReport["trust"]["roots"]): string[] {
  const others = Object.entries(roots).filter(([kind]) => kind !== RolloutEnvelope.kind);
  if (others.length === 0) return [];
  const sum = (of: "count" | "signed" | "trusted") => others.reduce((total, [, each]) => total + each[of], 0);
  const short = others.filter(([, { count, trusted }]) => trusted < count);
  return [
    `  and ${thousands(sum("signed"))} of ${plural(sum("count"), "other record")}, ${thousands(sum("trusted"))} by a trusted key`,
    ...short.map(
      ([kind, { count, trusted }]) =>
        `  NOT by a trusted key: ${thousands(count - trusted)} of ${thousands(count)} ${kindName(kind)}`,
    ),
  ];
}

export function kindName(kind: string): string {
  return kind.replace(/^rollbook\.|\.v\d+$/g, "");
}

function reachedLines(reached: Verified["reached"], { erased }: VerifyReport): string[] {
  if (reached === undefined || reached.batches.length === 0) return [];
  const { rollouts, calls } = reached;
  const batches = reached.batches.filter((digest) => erased.batches.every(({ batch }) => batch !== digest));
  const named = batches.length === 0 ? "" : ` (${batches.map(short).join(", ")})`;
  return [
    `${plural(batches.length, "batch")} assembled again${named}, ${plural(rollouts, "rollout")} considered, with ${plural(calls, "different call")} (equal calls are stored once)`,
  ];
}

function erasedLines({ erased }: VerifyReport): string[] {
  const { rollouts, references, batches, tombstones } = erased;
  if (tombstones.length === 0) return [];
  const names = rollouts.slice(0, 10).map(({ rollout }) => rollout);
  const more = rollouts.length > 10 ? ` and ${thousands(rollouts.length - 10)} more` : "";
  return [
    `erased: ${plural(rollouts.length, "rollout")} (${names.join(", ")}${more}), ${plural(references, "reference")} to what is gone`,
    ...tombstones.map(
      ({ digest, by, reason, blobs, atMs, signed, trusted }) =>
        `  tombstone ${short(digest)} by ${by} on ${new Date(atMs).toISOString().slice(0, 10)}, ${plural(blobs, "blob")}: ${reason} (${trusted ? "signed by a trusted key" : signed ? "signed by a key you do not trust" : "NOT signed"})`,
    ),
    ...batches.map(
      ({ batch, erased: gone, artifacts }) =>
        `  batch ${short(batch)} cannot be assembled again: ${thousands(gone)} of its ${plural(artifacts, "rollout")} ${gone === 1 ? "was" : "were"} erased`,
    ),
  ];
}

function catalogLines(differences: readonly CatalogDifference[]): string[] {
  if (differences.length === 0) return ["catalog: agrees with the book"];
  const shown = differences.slice(0, 5).map(({ digest, message }) => `  ${digest}: ${message}`);
  return [`catalog: DIFFERS from the book in ${plural(differences.length, "record")}`, ...shown];
}

const MADE_BECAUSE = {
  absent: "because its file was missing",
  damaged: "because its file was damaged",
  "other-version": "because its file was of another version",
  rebuilt: "by `catalog rebuild`",
} as const;

/** The catalog of a new book has seen all of its records, so there is nothing to say. */
function madeLines(made: Verified["catalogMade"]): string[] {
  if (made === undefined || made.why === "new") return [];
  return [
    `  The catalog was rebuilt at ${new Date(made.atMs).toISOString()} ${MADE_BECAUSE[made.why]}. It cannot show records that were deleted earlier.`,
  ];
}

function problemText({ code, record, where, message }: Problem): string {
  return `  ${record}: ${message} [${code}]${where === record ? "" : ` at ${where}`}`;
}
