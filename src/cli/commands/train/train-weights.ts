/** Implements `rollbook train weights`: seals weights that another trainer wrote. */
import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import type { Command } from "commander";
import { type Digest, RollbookError } from "../../../base/index.ts";
import { resolveBatch } from "../../../book/open/index.ts";
import { readRevision } from "../../../book/rollouts/index.ts";
import { sealWeights } from "../../../book/train/index.ts";
import { jsonLine } from "../../../view/format.ts";
import { addCommand, seedOption } from "../../command.ts";
import type { Io } from "../../io.ts";
import { wholeNumber } from "../../options/numbers.ts";
import { type BookFlags, withBook } from "../../with-book.ts";

interface WeightsFlags extends BookFlags {
  family: string;
  id: string;
  parent?: string;
  batch?: string[];
  dataset?: string[];
  seed: bigint;
  steps?: number;
}

export function addTrainWeights(train: Command, io: Io): void {
  addCommand(train, "weights", {
    summary: "seal weights that another trainer wrote",
    description: `Seal weights that another trainer wrote, as a revision that names its parent, its batches and its
datasets. The file is stored in the book unchanged, and the revision names its digest. The same weights under the same
id are sealed once.`,
    examples: [
      "rollbook train weights model.safetensors --family writer --id writer-r4 --parent writer-r3 --batch be3b",
    ],
  })
    .argument("<file>", "the file with the weights, such as a safetensors file; its format is not checked")
    .requiredOption("--family <family>", "the policy family of the revision")
    .requiredOption("--id <id>", "the id of the new revision")
    .option(
      "--parent <revision>",
      "the revision of the same family that it was trained from: id, digest, or first digits (default: none)",
    )
    .option("--batch <batch...>", "the batches it was trained on: digests, or first digits (default: none)")
    .option("--dataset <file...>", "files it was trained on, recorded by their digests (default: none)")
    .option("--steps <n>", "optimizer steps, recorded with the revision (default: not recorded)", wholeNumber)
    .addOption(seedOption("the seed of the training", 0n))
    .action((file: string, flags: WeightsFlags) => run(io, file, flags));
}

async function run(io: Io, file: string, flags: WeightsFlags): Promise<void> {
  const { family, id, parent, seed, steps } = flags;
  const weights = read(file);
  const datasets = (flags.dataset ?? []).map((each) => ({
    kind: "file" as const,
    digest: `sha256:${createHash("sha256").update(read(each)).digest("hex")}` as Digest,
  }));
  await withBook(io, { ...flags, mode: "write" }, async (book) => {
    const index = await book.index();
    const revision = await sealWeights(book, {
      ...{ weights, family, id, datasets, seed, steps },
      ...(parent === undefined ? {} : { parent: await readRevision(book, parent, family) }),
      batches: (flags.batch ?? []).map((each) => resolveBatch(index, each).digest),
    });
    const { digest } = revision.record;
    if (flags.json) io.out(jsonLine({ revision: revision.digest, id, family, digest }));
    else io.out(`revision ${id} of ${family}, weights ${digest}\n`);
  });
}

function read(path: string): Buffer {
  try {
    return readFileSync(path);
  } catch (cause) {
    throw new RollbookError("no-file", { path }, `${path} cannot be read. Name an existing file.`, { cause });
  }
}
