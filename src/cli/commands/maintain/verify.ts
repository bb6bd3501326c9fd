/** Implements `rollbook verify`, `rollbook artifact verify` and `rollbook batch verify`: recomputes every claim. */
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type { Command } from "commander";
import { type Digest, isDigest, isRollbookError, RollbookError } from "../../../base/index.ts";
import { wrongUsage } from "../../../book/decisions/index.ts";
import {
  type Repair,
  type Verified,
  type VerifyRequest,
  verifyArtifacts,
  verifyBatches,
  verifyBook,
  verifyNamed,
} from "../../../book/maintain/index.ts";
import { keyringOf, trustedKeys } from "../../../book/open/index.ts";
import { Tombstone } from "../../../contract/index.ts";
import { isPack } from "../../../keep/pack/index.ts";
import type { VerifyReport } from "../../../keep/verify/index.ts";
import { jsonLine, plural, short } from "../../../view/format.ts";
import { kindName, renderVerifyReport } from "../../../view/verify-view.ts";
import { addCommand } from "../../command.ts";
import type { Io } from "../../io.ts";
import { type BookFlags, withBook } from "../../with-book.ts";

interface VerifyFlags extends BookFlags {
  requireTrusted?: true;
}

interface JudgeOptions extends VerifyFlags {
  /** Head that the book must contain. */
  readonly expect?: Digest;
  /** Prints only the reports with a problem. */
  readonly brief?: boolean;
}

const TRUST_FLAG = [
  "--require-trusted",
  "fail unless a trusted key signed every record that needs a signature",
] as const;

export function addVerify(program: Command, io: Io): void {
  addCommand(program, "verify", {
    summary: "verify the whole book, or one record and everything it refers to",
    description: `Verify the whole book, or one record and everything it refers to: recompute every digest, follow
every reference, assemble every batch again. The report says separately whether the records are consistent and whether
a trusted key signed them.`,
    examples: ["rollbook verify", "rollbook verify r-0001 --json"],
  })
    .argument(
      "[name]",
      "id or digest of a record, its first digits, or the path of a run pack, as `pack seal` writes it (default: the whole book)",
    )
    .option(...TRUST_FLAG)
    .option(
      "--expect <head>",
      "fail unless the book still contains this head: its digest, or the file that `head --out` wrote",
    )
    .action(async (name: string | undefined, flags: VerifyFlags & { expect?: string }) => {
      const { expect: head, ...own } = flags;
      const expect = head === undefined ? {} : { expect: parseHead(head, name) };
      if (name !== undefined && isPack(name)) {
        const { verifyPackAt } = await import("../pack.ts");
        return verifyPackAt(io, name, flags);
      }
      const verified = await withBook(io, flags, async (book) =>
        name === undefined
          ? [await verifyBook(book, { ...options(io), ...expect })]
          : verifyNamed(book, name, options(io)),
      ).catch((error) => {
        throw name === undefined ? error : namedAsPath(name, error);
      });
      judge(io, { ...own, ...expect }, verified);
    });
}

export function addArtifactVerify(artifact: Command, io: Io): void {
  addCommand(artifact, "verify", {
    summary: "verify rollouts and every record they refer to",
    description: `Verify rollouts and every record they refer to. Without names, the command verifies all rollouts, and
prints a count, and the report of each rollout with a problem.`,
    examples: ["rollbook artifact verify", "rollbook artifact verify r-0001"],
  })
    .argument(
      "[artifact...]",
      "rollout ids, digests, or at least the first 4 characters of them (default: all)",
    )
    .option(...TRUST_FLAG)
    .option("--verbose", "print the report of every rollout")
    .action(async (names: string[], flags: VerifyFlags & { verbose?: true }) => {
      const verified = await withBook(io, flags, (book) => verifyArtifacts(book, names, options(io)));
      judge(io, { ...flags, brief: names.length === 0 && flags.verbose !== true }, verified);
    });
}

export function addBatchVerify(batch: Command, io: Io): void {
  addCommand(batch, "verify", {
    summary: "assemble a batch again from its records, options and seed, and compare",
    examples: ["rollbook batch verify b745 57a3"],
  })
    .argument("<batch...>", "digests of batches, or the first digits of them")
    .option(...TRUST_FLAG)
    .action(async (names: string[], flags: VerifyFlags) => {
      const verified = await withBook(io, flags, (book) => verifyBatches(book, names, options(io)));
      judge(io, flags, verified);
      requireCut(verified);
    });
}

/** Explains a name that is no record, but a path. A record takes precedence over a file of the same name. */
function namedAsPath(name: string, error: unknown): unknown {
  if (!(isRollbookError(error, "not-found") || isRollbookError(error, "no-book")) || !existsSync(name))
    return error;
  const next = existsSync(join(name, "revision.json"))
    ? "It is a checkpoint: name the id of its revision, as `rollbook artifact ls --revisions` lists it."
    : "Name a run pack, as `pack seal` and `bench run --run-pack-dir` write it, or the id of a record.";
  return new RollbookError(error.code, error.fields, `${name} is a path, but not a run pack. ${next}`, {
    cause: error,
  });
}

/** Reads a digest, or a file that names one. */
function parseHead(given: string, name: string | undefined): Digest {
  if (name !== undefined) throw wrongUsage("--expect is of the whole book. Leave the name out");
  if (isDigest(given)) return given;
  if (!existsSync(given))
    throw wrongUsage(
      `--expect ${given} is not a digest (sha256:…), and no file of this name exists. Give a digest, or the file that \`rollbook head --out\` wrote`,
    );
  const head = headIn(given);
  if (isDigest(head)) return head;
  throw new RollbookError(
    "bad-option",
    { expect: given },
    `--expect ${given} is not a file that \`rollbook head --out\` wrote. Give such a file, or a digest (sha256:…).`,
  );
}

/** Undefined if the file is no JSON object. */
function headIn(file: string): unknown {
  try {
    const { head } = JSON.parse(readFileSync(file, "utf8")) as { head?: unknown };
    return head;
  } catch {
    return undefined;
  }
}

function options(io: Io): VerifyRequest {
  let next = 0;
  return {
    trustedKeys: [...trustedKeys(keyringOf(io), () => {}).keys()],
    onProgress(bytes) {
      if (!io.live || bytes < next) return;
      next = bytes + 64 * 1024 ** 2;
      io.err(`\r${plural(Math.round(bytes / 1024 ** 2), "MiB")} read`);
    },
  };
}

const HEAD_REMEDY =
  "Give --expect a head of this book. If it is one, restore the book from a copy that contains this head.";

/** Maximum number of repairs in the text. */
const MOST_REPAIRS = 8;

function damageRemedy(broken: readonly Verified[], { book }: BookFlags): string {
  const to = book === undefined ? "" : ` --book ${book}`;
  const steps = [...new Set(broken.flatMap(({ repairs }) => repairs.map((each) => repairStep(each, to))))];
  const left = steps.length - MOST_REPAIRS;
  const more = left > 0 ? `; and ${left} more, which --json lists as repairs` : "";
  const restore =
    steps.length === 0
      ? "Restore the named files from a copy of the book"
      : `Restore from COPY, a copy of the book, in these steps: ${steps.slice(0, MOST_REPAIRS).join("; ")}${more}`;
  return `${restore}. Without a copy, import the rollouts or the log again: this repairs their records, but no receipts, verdicts or signatures of them. Then \`rollbook gc\` removes the damaged copies. Without copy and import, a damaged rollout is lost: \`rollbook batch assemble\` leaves it out with --exclude ID.`;
}

/** `to`: the option that names the damaged book, if it was given. */
function repairStep(repair: Repair, to: string): string {
  switch (repair.how) {
    case "file":
      // A catalog that was built without the damaged records does not look at the file again.
      return `copy the file ${repair.file} and run \`rollbook catalog rebuild${to}\``;
    case "rollout":
      return `\`rollbook artifact show ${short(repair.digest)} --json --book COPY | rollbook artifact import -${to}\``;
    case "record":
      return `\`rollbook cat ${short(repair.digest)} --book COPY | rollbook artifact import -${to}\``;
    default:
      return repair satisfies never;
  }
}

/** Prints the reports, and throws if one of them is bad. */
function judge(io: Io, flags: JudgeOptions, all: readonly Verified[]): void {
  const names = trustedKeys(keyringOf(io), (error) =>
    io.err(`your own key cannot be used, so its signatures count only if it is listed: ${error.message}\n`),
  );
  const broken = all.filter(({ report }) => report.problems.length > 0);
  const shown = flags.brief && !flags.json ? broken : all;
  for (const { report, ...rest } of shown)
    io.out(
      flags.json
        ? jsonLine({ ...rest, ...report })
        : renderVerifyReport({ report, ...rest }, { names, expected: flags.expect }),
    );
  if ((all.length > 1 || flags.brief) && !flags.json) io.out(`${totalLine(all)}\n`);
  const problems = all.reduce((sum, { report }) => sum + report.problems.length, 0);
  if (problems > 0) {
    const isWhole = broken.every(({ report }) =>
      report.problems.every(({ code }) => code === "head-missing"),
    );
    const remedy = isWhole ? HEAD_REMEDY : damageRemedy(broken, flags);
    throw new RollbookError(
      "not-verified",
      { problems },
      `${plural(problems, "problem")} found${all.length === 1 ? "" : `, in ${namesOf(broken)}`}. ${remedy}`,
    );
  }
  const differences = all.reduce((sum, { catalog }) => sum + (catalog?.length ?? 0), 0);
  if (differences > 0) {
    const message = `the catalog differs from the bytes in ${plural(differences, "record")}. Restore packs that are gone; otherwise the bytes are the truth: run \`rollbook catalog rebuild\`.`;
    throw new RollbookError("catalog-differs", { differences }, message);
  }
  if (flags.requireTrusted) requireTrusted(all);
}

const MOST_NAMED = 10;

function namesOf(broken: readonly Verified[]): string {
  const names = [...new Set(broken.map(({ what }) => what))];
  const left = names.length - MOST_NAMED;
  return `${names.slice(0, MOST_NAMED).join(", ")}${left > 0 ? ` and ${left} more` : ""}`;
}

function requireTrusted(all: readonly Verified[]): void {
  const kinds: UntrustedKinds = {};
  for (const { report } of all)
    for (const [kind, { count, signed, trusted }] of Object.entries(report.trust.roots)) {
      if (count === trusted) continue;
      const { untrusted = 0, unsigned = 0 } = kinds[kind] ?? {};
      kinds[kind] = { untrusted: untrusted + count - trusted, unsigned: unsigned + count - signed };
    }
  if (Object.keys(kinds).length > 0) throw notTrusted(kinds);
}

/** By kind: number of records without a signature of a trusted key, and of those without any signature. */
type UntrustedKinds = Record<string, { untrusted: number; unsigned: number }>;

/** A batch whose rollouts were erased is not broken, but it can no longer be compared. */
function requireCut(all: readonly Verified[]): void {
  const batches = all.flatMap(({ report }) => report.erased.batches);
  if (batches.length === 0) return;
  const { batch, erased, artifacts } = batches[0]!;
  const more =
    batches.length === 1 ? "" : ` The same holds for ${plural(batches.length - 1, "other batch")}.`;
  throw new RollbookError(
    "erased",
    { batches },
    `batch ${short(batch)} cannot be assembled again: ${erased} of its ${plural(artifacts, "rollout")} ${erased === 1 ? "was" : "were"} erased on purpose.${more} Make a new batch with \`rollbook batch assemble\`.`,
  );
}

function totalLine(all: readonly Verified[]): string {
  const sum = (of: (report: VerifyReport) => number) =>
    all.reduce((total, { report }) => total + of(report), 0);
  const problems = sum(({ problems }) => problems.length);
  const [signed, trusted] = [sum(({ trust }) => trust.signed), sum(({ trust }) => trust.trusted)];
  return `total: ${plural(all.length, "verification")}, ${problems === 0 ? "all self-consistent" : plural(problems, "problem")}, ${signed} signed, ${trusted} by a trusted key`;
}

/** Without any signature there is no signer to trust, so the message differs. */
function notTrusted(kinds: UntrustedKinds): RollbookError {
  const sum = (of: "untrusted" | "unsigned") =>
    Object.values(kinds).reduce((total, each) => total + each[of], 0);
  const [untrusted, unsigned] = [sum("untrusted"), sum("unsigned")];
  const named = Object.entries(kinds).map(([kind, each]) => `${each.untrusted} ${kindName(kind)}`);
  const tombstones = kinds[Tombstone.kind] ?? { untrusted: 0, unsigned: 0 };
  const remedies = [
    unsigned === tombstones.unsigned
      ? ""
      : ` ${unsigned - tombstones.unsigned} not signed at all: with a key (\`rollbook keys new\`), importing again signs them.`,
    unsigned === untrusted
      ? ""
      : ` ${untrusted - unsigned} signed by a key you do not trust: trust the signer with \`rollbook keys trust\`.`,
    tombstones.untrusted === 0
      ? ""
      : ` Records that ${tombstones.untrusted === 1 ? "the tombstone names" : "the tombstones name"} may be lost, not erased: restore them, or trust the signer.`,
  ];
  return new RollbookError(
    "not-trusted",
    { untrusted, unsigned, kinds },
    `${plural(untrusted, "record")} without a signature of a trusted key (${named.join(", ")}).${remedies.join("")}`,
  );
}
