/** Renders replay stores for a terminal.
 *  In: manifests and reports. Out: text. */
import {
  type ReplayManifest,
  TABLES,
  type ValidationReport,
  type WriteResult,
} from "../keep/replay/index.ts";
import { indent, page, plural, printable, short, table, thousands } from "./format.ts";

export function renderWritten(
  root: string,
  { manifest, rollouts, chains, skipped }: Omit<WriteResult, "withoutErrors">,
): string {
  const { rows, segments, generation } = manifest;
  const lines = [
    `${root}: ${plural(chains, "chain")} of ${plural(rollouts, "rollout")} written${skipped > 0 ? `, ${thousands(skipped)} skipped that were there` : ""}`,
    `  store        commit ${generation}, ${plural(segments.length, "segment")}, manifest ${short(manifest.digest)}`,
    `  rows         ${plural(rows.steps ?? 0, "step")}, ${plural(rows.candidates ?? 0, "candidate")}, ${plural(rows.tokens ?? 0, "token")}`,
  ];
  return page(lines);
}

export function renderInfo(
  root: string,
  { manifest, orphans }: { manifest: ReplayManifest; orphans: readonly string[] },
): string {
  const { returns, segments, reasons } = manifest;
  const widest = (name: "maxCandidates" | "maxContext" | "maxFeatures") =>
    Math.max(0, ...segments.map((segment) => segment[name]));
  const lines = [
    `${root}: a ${manifest.layout} replay store, ${manifest.tables.id} version ${manifest.tables.version}`,
    `  manifest     ${manifest.digest}, commit ${manifest.generation}`,
    `  returns      ${returns.semantics}, gamma ${returns.gamma}${returns.semantics === "root-gain" ? `; a gain is divided by at least ${returns.epsilon} (epsilon)` : ""}`,
    `  widths       ${plural(widest("maxCandidates"), "candidate")}, ${plural(widest("maxContext"), "context feature")}, ${plural(widest("maxFeatures"), "candidate feature")}`,
    `  reasons      ${reasons.length === 0 ? "none" : reasons.join(", ")}`,
    ...(orphans.length === 0 ? [] : [`  orphans      ${orphans.join(", ")}: \`rollbook gc\` removes them`]),
  ];
  const rows = Object.keys(TABLES).map((name) => ({ name, count: manifest.rows[name] ?? 0 }));
  const counts = table(rows, [
    { title: "table", cell: ({ name }) => name },
    { title: "rows", align: "right", cell: ({ count }) => thousands(count) },
  ]);
  return `${page(lines)}${indent(counts, 2)}`;
}

export function renderErrors({ root, valid, count, errors, rows }: ValidationReport): string {
  if (valid)
    return `${printable(root)}: valid, ${plural(rows.chains ?? 0, "chain")} and ${plural(rows.candidates ?? 0, "candidate")} checked\n`;
  const list = table(errors, [
    { title: "array", cell: ({ array }) => array },
    { title: "row", align: "right", cell: ({ row }) => (row === null ? "" : String(row)) },
    { title: "code", cell: ({ code }) => code },
    { title: "reason", cell: ({ reason }) => reason },
  ]);
  return `${list}${count > errors.length ? `and ${thousands(count - errors.length)} more\n` : ""}`;
}
