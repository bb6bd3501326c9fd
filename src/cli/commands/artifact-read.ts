/** `rollbook artifact ls` and `rollbook artifact show`. */
import { type Command, Option } from "commander";
import { type Digest, RollbookError } from "../../base/index.ts";
import type { BookIndex } from "../../book/find/book-index.ts";
import { type Artifact, artifactsOf, resolveArtifact, revisionsIn } from "../../book/find/resolve.ts";
import { failureOwner } from "../../contract/ending.ts";
import {
  Attestation,
  Feedback,
  inlineRollout,
  Receipt,
  Release,
  RolloutContent,
  RolloutEnvelope,
  Verdict,
} from "../../contract/index.ts";
import type { BlobStore } from "../../store/index.ts";
import { readRecord } from "../../store/read-record.ts";
import {
  type ArtifactDetails,
  artifactRow,
  renderArtifact,
  renderArtifacts,
  renderRevisions,
  revisionRow,
} from "../../view/artifact-view.ts";
import { figure, jsonLine, short } from "../../view/format.ts";
import { addCommand, wholeNumber } from "../command.ts";
import type { Io } from "../io.ts";
import { type BookFlags, withIndexedBook } from "../with-book.ts";

/** As `artifact ls` prints them; `failed` stands for a failure of any owner. */
const ENDINGS = [
  "terminal",
  "truncated",
  "cancelled",
  "failed",
  ...failureOwner.options.map((owner) => `failed-${owner}`),
];

interface ListFlags extends BookFlags {
  family?: string;
  group?: string;
  task?: string;
  ending?: string;
  limit?: number;
  revisions?: true;
  json?: true;
}

export function addList(artifact: Command, io: Io): void {
  addCommand(artifact, "ls", {
    summary: "list the rollouts of the book",
    examples: ["rollbook artifact ls", "rollbook artifact ls --ending failed --json"],
  })
    .option("--family <family>", "only rollouts with a stream of this policy family")
    .option("--group <group>", "only this group")
    .option("--task <task>", "only this task")
    .addOption(new Option("--ending <ending>", "only this ending").choices(ENDINGS))
    .option("--limit <n>", "at most this many", wholeNumber)
    .option("--revisions", "list the policy revisions of the book instead")
    .action(async (flags: ListFlags) => {
      if (flags.revisions) return listRevisions(io, flags);
      const all = await withIndexedBook(io, flags, async (_, index) => artifactsOf(index));
      const found = all.filter((each) => matches(each, flags)).slice(0, flags.limit);
      if (flags.json) for (const each of found) io.out(jsonLine(artifactRow(each)));
      else if (found.length > 0) io.out(renderArtifacts(found));
      else
        io.err(
          all.length === 0
            ? "the book holds no rollout yet: `rollbook artifact import` brings some\n"
            : "no rollout fits these filters\n",
        );
    });
}

async function listRevisions(io: Io, flags: ListFlags): Promise<void> {
  const idle = (["group", "task", "ending"] as const).find((name) => flags[name] !== undefined);
  if (idle !== undefined)
    throw new RollbookError(
      "wrong-usage",
      { option: idle },
      `--${idle} says nothing to --revisions. See --help.`,
    );
  const all = await withIndexedBook(io, flags, async (_, index) => revisionsIn(index));
  const found = all
    .filter(({ family }) => flags.family === undefined || family === flags.family)
    .slice(0, flags.limit);
  if (flags.json) for (const each of found) io.out(jsonLine(revisionRow(each)));
  else if (found.length > 0) io.out(renderRevisions(found));
  else io.err("the book holds no such policy revision\n");
}

function matches({ content: { fields } }: Artifact, flags: ListFlags): boolean {
  const ending = String(fields.ending);
  return (
    (flags.family === undefined || (fields.families as string[]).includes(flags.family)) &&
    (flags.group === undefined || fields.group === flags.group) &&
    (flags.task === undefined || fields.task === flags.task) &&
    (flags.ending === undefined || ending === flags.ending || ending.startsWith(`${flags.ending}-`))
  );
}

export function addShow(artifact: Command, io: Io): void {
  addCommand(artifact, "show", {
    summary: "show one rollout",
    description: `Show one rollout. With --json it is printed in the exchange form, which import reads back: one line for each
envelope, so a rollout that was run twice gives two.`,
    examples: ["rollbook artifact show r-0001", "rollbook artifact show r-0001 --json > r-0001.json"],
  })
    .argument("<artifact>", "rollout id, digest, or the first digits of one")
    .action(async (name: string, flags: BookFlags & { json?: true }) => {
      await withIndexedBook(io, flags, async (book, index) => {
        const artifact = resolveArtifact(index, name);
        if (!flags.json) {
          io.out(renderArtifact(await readDetails(book, index, artifact)));
          return;
        }
        const { content, envelopes } = artifact;
        for (const envelope of envelopes) {
          const pair = { content: content.digest, envelope };
          io.out(jsonLine(await inlineRollout((digest) => book.get(digest), pair)));
        }
      });
    });
}

async function readDetails(
  store: Pick<BlobStore, "get">,
  index: BookIndex,
  artifact: Artifact,
): Promise<ArtifactDetails> {
  const { content, envelopes } = artifact;
  return {
    contentDigest: content.digest,
    content: await readRecord(store, RolloutContent, content.digest),
    envelopes: await Promise.all(
      envelopes.map(async (digest) => ({
        digest,
        envelope: await readRecord(store, RolloutEnvelope, digest),
        signers: await signersOfEnvelope(store, index, digest),
      })),
    ),
    about: sayings(index, content.digest),
  };
}

async function signersOfEnvelope(
  store: Pick<BlobStore, "get">,
  index: BookIndex,
  envelope: Digest,
): Promise<string[]> {
  const signers = new Set<string>();
  for (const digest of index.attestationsOf(envelope))
    signers.add((await readRecord(store, Attestation, digest)).signer);
  return [...signers].sort();
}

function sayings(index: BookIndex, content: Digest): string[] {
  const about = (kind: string) => index.ofKind(kind).filter(({ fields }) => fields.subject === content);
  return [
    ...about(Receipt.kind).map(
      ({ digest, fields }) => `receipt      ${receiptText(fields)} (${short(digest)})`,
    ),
    ...about(Feedback.kind).map(
      ({ fields }) => `feedback     ${fields.name} ${figure(fields.value as number)} from ${fields.source}`,
    ),
    ...about(Verdict.kind).map(
      ({ fields }) =>
        `verdict      ${fields.disposition} by ${fields.validator}, weight ${fields.weightBps} bps`,
    ),
    ...about(Release.kind).map(({ fields }) => `release      by ${fields.by}: ${fields.reason}`),
  ];
}

/** A judgement begins with its outcome; other messages do not. */
function receiptText({ outcome, message }: Readonly<Record<string, unknown>>): string {
  return String(message).startsWith(String(outcome)) ? String(message) : `${outcome}: ${message}`;
}
