/** `rollbook artifact admit` and `rollbook artifact release`: what may teach, and what is let in after all. */
import type { Command } from "commander";
import { RollbookError } from "../../../base/index.ts";
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
  target?: string;
  validate?: true;
  validator: string;
}

export function addAdmit(artifact: Command, io: Io): void {
  const command = addCommand(artifact, "admit", {
    summary: "judge whether rollouts may teach, and keep the verdicts",
    description: `Judge whether rollouts may teach, and keep the verdicts, which batches obey. With --target: how far their policy
has drifted from that revision, how old policy and rollout are. With --validate: a proof of execution that is there, times
and token counts that fit, no copies; each rollout that this validator has not judged yet.`,
    examples: [
      "rollbook artifact admit r-0001 --target writer-r3 --drift 1/5",
      "rollbook artifact admit --validate --json",
    ],
  })
    .argument("[artifact...]", "only these (default: all of the book)")
    .option("--target <revision>", "judge freshness against this policy revision");
  addFreshnessOptions(command)
    .option("--validate", "check proofs, times, token counts and copies")
    .option("--validator <id>", "the name under which --validate judges", "rollbook")
    .action((names: string[], flags: AdmitFlags) => runAdmit(io, names, flags));
}

async function runAdmit(io: Io, artifacts: readonly string[], flags: AdmitFlags): Promise<void> {
  const { target, validator, validate } = flags;
  if (target === undefined && validate === undefined)
    throw new RollbookError(
      "nothing-to-judge",
      {},
      "neither freshness nor validation is asked for. Name a revision with --target, or say --validate, or both.",
    );
  const judged = await withBook(io, { ...flags, mode: "write" }, async (book) => {
    const fresh =
      target === undefined ? [] : await admitRollouts(book, { artifacts, target, budgets: budgetsOf(flags) });
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
}

export function addRelease(artifact: Command, io: Io): void {
  addCommand(artifact, "release", {
    summary: "let a quarantined rollout into batches",
    description: `Let a quarantined rollout into batches, by name and with a reason. It undoes the verdicts that quarantine it now,
and no later one.`,
    examples: ['rollbook artifact release r-0001 --reason "a rare task"'],
  })
    .argument("<artifact>", "rollout id, digest, or the first digits of one")
    .requiredOption("--reason <text>", "why it may teach all the same")
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
