/** Implements `rollbook artifact admit` and `rollbook artifact release`: decides which rollouts may be used, and
 *  releases quarantined ones. */
import type { Command } from "commander";
import { wrongUsage } from "../../../book/decisions/index.ts";
import {
  type AdmissionResult,
  type FittingTarget,
  judgeFreshness,
  releaseRollout,
  validateRollouts,
} from "../../../book/rollouts/index.ts";
import { jsonLine, plural, short, table, thousands } from "../../../view/format.ts";
import { addCommand } from "../../command.ts";
import type { Io } from "../../io.ts";
import {
  addFreshnessOptions,
  budgetsOf,
  FRESHNESS_GROUP,
  type FreshnessFlags,
  freshnessWords,
} from "../../options/freshness-options.ts";
import { type BookFlags, withBook } from "../../with-book.ts";

interface AdmitFlags extends BookFlags, FreshnessFlags {
  exp?: string;
  target?: string;
  chosenBy?: string;
  validate?: true;
  proof: boolean;
  validator: string;
}

export function addAdmit(artifact: Command, io: Io): void {
  const command = addCommand(artifact, "admit", {
    summary: "judge whether rollouts may be used for training, and seal the verdicts",
    description: `Judge whether rollouts may be used for training, and seal the verdicts, by default for all rollouts of the book.
Later batches, trainings and evaluations obey the newest verdict of each validator, and leave out rollouts that it rejects or quarantines.

--target judges the age of a rollout: how many revisions its policy is behind the target, and how old policy and rollout
are. Name a revision whose number or parents connect it with the policies of the rollouts; otherwise they are rejected.
The column WHY gives the reason for each rollout that is not accepted. To undo a verdict, admit the rollout again.
Rollouts without a choice by the target's policy family are only counted, as unobserved.

--validate judges only whether a record is valid: it checks the proof of execution, times and token counts, and looks for
copies. Failed and cancelled rollouts are accepted too if their record is valid, but training leaves them out regardless
(a failure of the agent counts if it has a reward). Without ids, it skips rollouts that this validator has judged before; a
rollout that is named by its id is judged again. Rollouts without a proof, such as those of an imported log, are
rejected: for them, add --no-proof. docs/reference/keep.md lists all verdicts.`,
    examples: [
      "rollbook artifact admit r-0001 --target writer-r3 --drift 1/5",
      "rollbook artifact admit --validate --json",
    ],
  })
    .argument(
      "[artifact...]",
      "rollout ids, digests, or the first digits of them (default: all rollouts of the book)",
    )
    .option(
      "--exp <id>",
      "with --target: only rollouts of this experiment, a name in the column EXPERIMENT of `artifact ls` (default: all)",
    )
    .option("--validate", "check proofs of execution, times, token counts and copies")
    .option(
      "--no-proof",
      "with --validate: require no proof of execution, and judge rollouts again that were rejected only for that",
    )
    .option("--validator <id>", "name of the validator in the verdicts of --validate", "rollbook")
    .optionsGroup(FRESHNESS_GROUP)
    .option(
      "--target <revision>",
      "judge the age of rollouts against this policy revision: id, digest, or first digits (default: not judged)",
    )
    .option(
      "--chosen-by <revision>",
      "with --target: only rollouts in which this revision chose, as `artifact show` names it (default: all)",
    );
  addFreshnessOptions(command).action((names: string[], flags: AdmitFlags) => runAdmit(io, names, flags));
}

async function runAdmit(io: Io, artifacts: readonly string[], flags: AdmitFlags): Promise<void> {
  const { target, validator, validate, proof: requireProof, exp: experiment, chosenBy } = flags;
  if (!requireProof && validate === undefined)
    throw wrongUsage("--no-proof has no effect without --validate");
  for (const [name, value] of Object.entries({ "--exp": experiment, "--chosen-by": chosenBy }))
    if (value !== undefined && validate === true)
      throw wrongUsage(`${name} has no effect on --validate. Remove one of them`);
  if (target === undefined && validate === undefined)
    throw wrongUsage(
      "nothing to judge: neither --target nor --validate is given. Add --target REVISION, --validate, or both",
    );
  const { judged, fitting } = await withBook(io, { ...flags, mode: "write" }, async (book) => {
    const filter = { artifacts, experiment, chosenBy };
    const { results, fitting } =
      target === undefined
        ? { results: [], fitting: [] }
        : await judgeFreshness(book, { ...filter, target, budgets: budgetsOf(flags) });
    const validated = validate ? await validateRollouts(book, { artifacts, validator, requireProof }) : [];
    return { judged: [...results, ...validated], fitting };
  });
  print(io, flags, judged);
  if (!flags.json && fitting.length > 0) io.err(fittingText(fitting, artifacts, flags));
}

/** Maximum number of commands in a note. */
const MOST_COMMANDS = 5;

/** Commands that accept rollouts whose policy is newer than the target, or not comparable with it. */
function fittingText(
  fitting: readonly FittingTarget[],
  artifacts: readonly string[],
  flags: AdmitFlags,
): string {
  const { book, exp } = flags;
  const common = [
    ...(book === undefined ? [] : ["--book", book]),
    ...(exp === undefined ? [] : ["--exp", exp]),
    ...freshnessWords(flags),
  ];
  const lines = fitting.slice(0, MOST_COMMANDS).map(({ revision, rollouts, fitsAll }) => {
    const chosenBy = fitsAll ? flags.chosenBy : revision;
    const words = [
      ...artifacts,
      "--target",
      revision,
      ...(chosenBy === undefined ? [] : ["--chosen-by", chosenBy]),
    ];
    return `  rollbook artifact admit ${[...words, ...common].join(" ")}  # ${thousands(rollouts)} more\n`;
  });
  const more = fitting.length - lines.length;
  const rest = more === 0 ? "" : `  and ${plural(more, "revision")} more\n`;
  return `note: ${fitting.length === 1 ? "another target accepts" : "other targets accept"} more of them:\n${lines.join("")}${rest}`;
}

function print(
  io: Io,
  flags: Pick<AdmitFlags, "json" | "validator" | "chosenBy">,
  judged: readonly AdmissionResult[],
): void {
  if (flags.json) {
    for (const each of judged) io.out(jsonLine(each));
    return;
  }
  // Rollouts of other families can be thousands, and there is nothing to do about them.
  const listed = judged.filter(
    ({ disposition }) => disposition !== "accepted" && disposition !== "unobserved",
  );
  if (listed.length > 0)
    io.out(
      table(listed, [
        { title: "ROLLOUT", cell: ({ rolloutId }) => rolloutId },
        { title: "VALIDATOR", cell: ({ validator }) => validator },
        { title: "VERDICT", cell: ({ disposition }) => disposition },
        { title: "WHY", cell: ({ why }) => why },
      ]),
    );
  io.err(`${judged.length === 0 ? nothingText(flags) : summaryOf(judged)}\n`);
}

function nothingText({ validator, chosenBy }: Pick<AdmitFlags, "validator" | "chosenBy">): string {
  return chosenBy === undefined
    ? `nothing to judge: the book holds no rollout, or the validator named ${validator} (--validator) has judged all of them before. To judge a rollout again, give its id`
    : `nothing to judge: ${chosenBy} chose in none of the rollouts. \`rollbook artifact show ROLLOUT\` names the revision that chose, such as the router around a policy`;
}

function summaryOf(judged: readonly AdmissionResult[]): string {
  const counts = new Map<string, number>();
  for (const { disposition } of judged) counts.set(disposition, (counts.get(disposition) ?? 0) + 1);
  const text = [...counts].map(
    ([disposition, count]) =>
      `${thousands(count)} ${disposition}${disposition === "unobserved" ? " (no choice by the target's family)" : ""}`,
  );
  const known = judged.filter(({ added }) => !added).length;
  const before = known === 0 ? "" : `, ${thousands(known)} of them as before`;
  return `${plural(judged.length, "judgement")}${before}: ${text.join(", ")}`;
}

export function addRelease(artifact: Command, io: Io): void {
  addCommand(artifact, "release", {
    summary: "allow a quarantined rollout into batches",
    description: `Allow a quarantined rollout into batches, and record the reason. The release overrides the verdicts
that quarantine the rollout now, not later ones.`,
    examples: ['rollbook artifact release r-0001 --reason "a rare task"'],
  })
    .argument("<artifact>", "rollout id, digest, or the first digits of one")
    .requiredOption("--reason <text>", "why it may be used for training")
    .option("--by <id>", "name of the person or program that releases it", "owner")
    .action((name: string, flags: BookFlags & { reason: string; by: string }) => runRelease(io, name, flags));
}

async function runRelease(
  io: Io,
  name: string,
  flags: BookFlags & { reason: string; by: string },
): Promise<void> {
  const { rolloutId, releases } = await withBook(io, { ...flags, mode: "write" }, (book) =>
    releaseRollout(book, name, flags),
  );
  for (const { digest, record } of releases)
    io.out(
      flags.json
        ? jsonLine({ release: digest, ...record })
        : `${rolloutId} released from the verdict ${short(record.verdict)}\n`,
    );
}
