/** How a verification report looks on a terminal: whether the records agree with themselves is one question, whether
 *  somebody trusted signed them another. */
import type { Problem, VerifyReport } from "../../keep/verify/index.ts";
import { plural, printable, thousands } from "../output.ts";

const MOST_PROBLEMS = 50;

export function renderReport(what: string, report: VerifyReport, names: ReadonlyMap<string, string>): string {
  const { problems, trust } = report;
  const lines = [
    `${what}: ${plural(report.blobs, "blob")}, ${plural(report.bytes, "byte")}`,
    problems.length === 0
      ? "self-consistent: yes, every digest, record, reference and batch fits"
      : `self-consistent: NO, ${plural(problems.length, "problem")}`,
    ...problems.slice(0, MOST_PROBLEMS).map(problemText),
    ...(problems.length > MOST_PROBLEMS
      ? [`  … and ${thousands(problems.length - MOST_PROBLEMS)} more (--json lists all)`]
      : []),
    `signed: ${trust.signed} of ${plural(trust.artifacts, "artifact")}, ${trust.trusted} by a trusted key`,
    ...trust.signers.map(
      ({ key, artifacts, trusted }) =>
        `  ${key} ${plural(artifacts, "artifact")}, ${trusted ? `trusted (${names.get(key)})` : "not trusted"}`,
    ),
    ...(report.external === 0
      ? []
      : [`outside the book: ${plural(report.external, "reference")}, named and not checked`]),
    ...(report.unrecordedRevisions.length === 0
      ? []
      : [`revisions without a record: ${report.unrecordedRevisions.slice(0, 20).join(", ")}`]),
  ];
  return lines.map((line) => `${printable(line)}\n`).join("");
}

export function problemText({ code, record, where, message }: Problem): string {
  return `  ${record}: ${message} [${code}]${where === record ? "" : ` at ${where}`}`;
}
