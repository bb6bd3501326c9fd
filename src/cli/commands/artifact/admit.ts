/** `rollbook artifact admit` and `rollbook artifact release`: what may teach, and what is let in after all. */
import type { Command } from "commander";
import { RollbookError } from "../../../base/index.ts";
import { wrongUsage } from "../../../book/decisions/index.ts";
import {
  type AdmissionResult,
  admitRollouts,
  releaseRollout,
  validateRollouts,
} from "../../../book/rollouts/index.ts";
import { jsonLine, plural, short, table } from "../../../view/format.ts";
import { addCommand } from "../../command.ts";
import type { Io } from "../../io.ts";
import { addFreshnessOptions, budgetsOf, type FreshnessFlags } from "../../options/freshness-options.ts";
import { type BookFlags, withBook } from "../../with-book.ts";

interface AdmitFlags extends BookFlags, FreshnessFlags {
  exp?: string;
  target?: string;
  validate?: true;
  validator: string;
}

export function addAdmit(artifact: Command, io: Io): void {
  const command = addCommand(artifact, "admit", {
    summary: "judge whether rollouts may be used for training, and seal the verdicts",
    description: `Judge whether rollouts may be used for training, and seal the verdicts. Batches leave out rollouts
that a verdict rejects or quarantines. --target judges freshness: how many revisions the policy of a rollout is behind
that revision, and how old policy and rollout are. Name the newest revision: rollouts of a revision newer than the
target are discarded as stale and not used. To use them, run admit again with that newer revision as --target. --validate checks the proof of execution, times and token counts,
and looks for copies. It skips rollouts that this validator has judged before. The verdict unobserved means that the
check found nothing to judge, for example no choice of the target's family; such a rollout is not used.`,
    examples: [
      "rollbook artifact admit r-0001 --target writer-r3 --drift 1/5",
      "rollbook artifact admit --validate --json",
    ],
  })
    .argument("[artifact...]", "only these (default: all of the book)")
    .option("--exp <id>", "with --target: only rollouts of this experiment, as `launch --exp` named it")
    .option("--target <revision>", "judge freshness against this policy revision");
  addFreshnessOptions(command)
    .option("--validate", "check proofs, times, token counts and copies")
    .option("--validator <id>", "name of the validator in the verdicts of --validate", "rollbook")
    .action((names: string[], flags: AdmitFlags) => runAdmit(io, names, flags));
}

async function runAdmit(io: Io, artifacts: readonly string[], flags: AdmitFlags): Promise<void> {
  const { target, validator, validate, exp: experiment } = flags;
  if (experiment !== undefined && validate === true)
    throw wrongUsage("--exp has no effect on --validate. Remove one of them");
  if (target === undefined && validate === undefined)
    throw new RollbookError(
      "nothing-to-judge",
      {},
      "nothing to judge: neither --target nor --validate is given. Add --target REVISION, --validate, or both.",
    );
  const judged = await withBook(io, { ...flags, mode: "write" }, async (book) => {
    const fresh =
      target === undefined
        ? []
        : await admitRollouts(book, { artifacts, experiment, target, budgets: budgetsOf(flags) });
    return validate ? [...fresh, ...(await validateRollouts(book, { artifacts, validator }))] : fresh;
  });
  print(io, flags, judged);
}

function print(io: Io, flags: { json?: true }, judged: readonly AdmissionResult[]): void {
  if (flags.json) {
    for (const each of judged) io.out(jsonLine(each));
    return;
  }
  if (judged.length > 0)
    io.out(
      table(judged, [
        { title: "ROLLOUT", cell: ({ rolloutId }) => rolloutId },
        { title: "VALIDATOR", cell: ({ validator }) => validator },
        { title: "VERDICT", cell: ({ disposition }) => disposition },
        { title: "WHY", cell: ({ message }) => message },
      ]),
    );
  const added = judged.filter((each) => each.added).length;
  io.err(`${plural(judged.length, "judgement")}, ${added} of them new\n`);
  if (judged.some(({ message }) => message.includes("lies in the future")))
    io.err(
      "note: the target is older than the policy of some rollouts, so they are not used. Admit them again with the newer revision as --target to bring them back\n",
    );
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
    .option("--by <id>", "who says so", "owner")
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
