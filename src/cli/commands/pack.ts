/** Implements `rollbook pack`: results with everything they depend on, so that others can verify and repeat them. */
import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Command } from "commander";
import { RollbookError } from "../../base/index.ts";
import { keyringOf, loadSigner, trustedKeys } from "../../book/open/index.ts";
import { packPaths, readPack, writeTar } from "../../keep/pack/index.ts";
import { brokenLinks, rerunPack, sealLoopPack, verifyPack, withPackFolder } from "../../loop/pack/index.ts";
import { jsonLine, plural, short } from "../../view/format.ts";
import { renderChain, renderRerun } from "../../view/pack-view.ts";
import { addCommand, addGroup } from "../command.ts";
import type { Io } from "../io.ts";

interface PackFlags {
  requireTrusted?: true;
  json?: true;
}

export function addPack(program: Command, io: Io): void {
  const group = addGroup(program, "pack", {
    summary: "seal, verify and repeat a result together with its inputs",
    examples: ["rollbook pack verify smoke-pack", "rollbook pack rerun smoke-pack"],
  });
  addCommand(group, "seal", {
    summary: "seal a finished training loop as a run pack",
    description: `Seal a finished training loop on the simulator as a run pack: configuration, tasks, models, every sealed record of the
book, the results, and what is needed to repeat the run (code, lockfile, Node, machine, command). \`rollbook bench run
--run-pack-dir\` seals packs of suites.`,
    examples: ["rollbook pack seal --config loop.yaml --out loop-pack"],
  })
    .requiredOption(
      "--config <file>",
      "the loop's configuration; the files that it names must be in its folder",
    )
    .requiredOption("--out <dir>", "the pack, a new directory")
    .action(async (flags: { config: string; out: string; book?: string; json?: true }) => {
      const { digest } = await sealLoopPack(flags.config, {
        ...flags,
        signer: signerOf(io),
        clock: io.clock,
      });
      io.out(
        flags.json ? jsonLine({ pack: flags.out, digest }) : `${flags.out}: sealed as ${short(digest)}\n`,
      );
    });
  addCommand(group, "verify", {
    summary: "recompute every digest and figure of a pack, and print the chain",
    description: `Recompute every digest of a pack, follow every link from its results to their inputs, and compute the
figures again. Prints the chain as a tree; a broken link says why. Exit 1 if a link is broken.`,
    examples: ["rollbook pack verify smoke-pack", "rollbook pack verify smoke-pack --json"],
    book: false,
  })
    .argument("<pack>", "a directory, or a tar file")
    .option("--require-trusted", "fail unless a trusted key signed the pack")
    .action((path: string, flags: PackFlags) => verifyPackAt(io, path, flags));
  addCommand(group, "rerun", {
    summary: "run a pack again from its own inputs and compare the results",
    description: `Run a pack again from its own inputs and compare the results bit for bit. Reports how code and Node
differ from those that sealed the pack. Exit 1 if the results differ, or if a file of the pack is changed, missing or
added.`,
    examples: ["rollbook pack rerun smoke-pack"],
    book: false,
  })
    .argument("<pack>", "a directory, or a tar file")
    .action((path: string, flags: PackFlags) => rerun(io, path, flags));
  addCommand(group, "tar", {
    summary: "write a pack as one tar file",
    examples: ["rollbook pack tar smoke-pack --out smoke.tar"],
    book: false,
  })
    .argument("<pack>", "the directory of a pack")
    .requiredOption("--out <file>", "the tar file; never overwritten")
    .action((path: string, flags: { out: string; json?: true }) => {
      const { digest } = readPack(requirePath(path));
      writeTar(flags.out, path, packPaths(path));
      io.out(flags.json ? jsonLine({ pack: flags.out, digest }) : `${flags.out}: pack ${short(digest)}\n`);
    });
}

/** Also called for `rollbook verify <pack>`. */
export async function verifyPackAt(io: Io, path: string, flags: PackFlags): Promise<void> {
  const { chain, signers, digest, record } = await withPackFolder(requirePath(path), verifyPack);
  const trusted = trustedKeys(keyringOf(io), () => {});
  const good = signers.filter((key) => trusted.has(key as never)).length;
  const broken = brokenLinks(chain);
  io.out(
    flags.json
      ? jsonLine({ pack: path, digest, run: record.run, signers, trusted: good, chain, broken })
      : `${renderChain(chain)}${broken.length === 0 ? "valid: all digests, links and figures match\n" : ""}${signedText(signers.length, good)}\n`,
  );
  if (broken.length > 0)
    throw new RollbookError(
      "broken-pack",
      { broken },
      `the check ${broken[0]!.path} failed: ${broken[0]!.broken} Get the pack again from where it was sealed.`,
    );
  if (flags.requireTrusted && good === 0)
    throw new RollbookError(
      "not-trusted",
      { path },
      `no trusted key signed ${path}. Trust one with \`rollbook keys trust\`.`,
    );
}

function signedText(signers: number, trusted: number): string {
  return signers === 0 ? "not signed" : `signed by ${plural(signers, "key")}, ${trusted} trusted`;
}

async function rerun(io: Io, path: string, flags: PackFlags): Promise<void> {
  const work = mkdtempSync(join(tmpdir(), "rollbook-rerun-"));
  try {
    const again = await withPackFolder(requirePath(path), (folder) =>
      rerunPack(folder, { work, log: (line) => io.err(`${line}\n`) }),
    );
    io.out(flags.json ? jsonLine(again) : renderRerun(again.record.run.name, again));
    if (again.differences.length > 0)
      throw new RollbookError(
        "other-results",
        { differences: again.differences },
        `the second run of ${path} gave other results. The lines above say where, and how this machine differs.`,
      );
  } finally {
    rmSync(work, { recursive: true, force: true });
  }
}

function requirePath(path: string): string {
  if (existsSync(path)) return path;
  throw new RollbookError("no-file", { path }, `${path} does not exist. Check the path.`);
}

/** Packs are signed if there is a key. */
export function signerOf(io: Io) {
  return loadSigner(keyringOf(io));
}
