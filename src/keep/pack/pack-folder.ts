/** The files of a run pack. In: a folder. Out: its files by digest, and their differences from its record. `pack.json`
 *  is the sealed record in canonical form; `signatures/` holds attestations of its digest. */
import { createHash } from "node:crypto";
import { closeSync, existsSync, lstatSync, openSync, readdirSync, readFileSync, readSync } from "node:fs";
import { join } from "node:path";
import { compareUtf8, type Digest, digestBytes, given, RollbookError } from "../../base/index.ts";
import { Attestation, openRecord, RunPack, type Sealed, type Signer, seal } from "../../contract/index.ts";
import { makeDirectory, writeAtomically } from "../../store/index.ts";

const PACK_FILE = "pack.json";
const SIGNATURES = "signatures";

type PackedFile = RunPack["files"][number];
type PackFacts = Omit<RunPack, "files" | "schema" | "signer">;

/** A difference between a folder and its record. */
interface PackFault {
  readonly path: string;
  readonly fault: "missing" | "extra" | "changed" | "not-a-file";
}

/** True if a path names a pack: its folder, or a tar file. */
export function isPack(path: string): boolean {
  return existsSync(join(path, PACK_FILE)) || (path.endsWith(".tar") && existsSync(path));
}

/** Writes the record last: a folder without a record is not a pack. */
export function sealPackFolder(
  folder: string,
  facts: PackFacts,
  signer: Signer | undefined,
): Sealed<RunPack> {
  if (existsSync(join(folder, PACK_FILE)))
    throw new RollbookError("exists", { folder }, `${folder} is already a run pack. A pack is sealed once.`);
  const pack = seal(RunPack, { ...facts, files: filesOf(folder), ...given({ signer: signer?.publicKey }) });
  if (signer !== undefined) {
    makeDirectory(join(folder, SIGNATURES));
    const { digest, bytes } = signer.attest([pack.digest]);
    writeWhole(join(folder, SIGNATURES, `${digest.slice(7)}.json`), bytes);
  }
  writeWhole(join(folder, PACK_FILE), pack.bytes);
  return pack;
}

export function readPack(folder: string): { digest: Digest; record: RunPack } {
  const path = join(folder, PACK_FILE);
  if (!existsSync(path))
    throw new RollbookError(
      "no-pack",
      { folder },
      `${folder} is not a run pack: it has no ${PACK_FILE}. Make one with \`rollbook pack seal\` or \`rollbook bench run --run-pack-dir\`.`,
    );
  const bytes = readFileSync(path);
  return { digest: digestBytes(RunPack.kind, bytes), record: openRecord(RunPack, bytes, path) };
}

/** All files of a pack, including its record and signatures, sorted. */
export function packPaths(folder: string): string[] {
  return walk(folder)
    .map(({ path }) => path)
    .sort(compareUtf8);
}

export function readSignatures(folder: string): { path: string; record: Attestation }[] {
  const own = join(folder, SIGNATURES);
  if (!existsSync(own)) return [];
  return readdirSync(own)
    .sort(compareUtf8)
    .map((name) => ({
      path: `${SIGNATURES}/${name}`,
      record: openRecord(Attestation, readFileSync(join(own, name)), `${SIGNATURES}/${name}`),
    }));
}

export function faultsOf(folder: string, { files }: Pick<RunPack, "files">): PackFault[] {
  const listed = new Set(files.map(({ path }) => path));
  const faults: PackFault[] = walk(folder)
    .filter(({ path, isFile }) => !isFile || !(listed.has(path) || isOwn(path)))
    .map(({ path, isFile }) => ({ path, fault: isFile ? "extra" : "not-a-file" }));
  for (const { path, bytes, digest } of files) {
    const at = join(folder, path);
    const there = lstatSync(at, { throwIfNoEntry: false });
    if (there === undefined) faults.push({ path, fault: "missing" });
    else if (there.isFile() && (there.size !== bytes || hashFile(at) !== digest))
      faults.push({ path, fault: "changed" });
  }
  return faults;
}

function writeWhole(path: string, bytes: Uint8Array): void {
  writeAtomically(path, bytes, `${path}.part`);
}

function filesOf(folder: string): PackedFile[] {
  return walk(folder)
    .filter(({ path }) => !isOwn(path))
    .map(({ path, isFile }) => {
      if (!isFile)
        throw new RollbookError(
          "not-a-file",
          { path },
          `${path} is not a plain file. A pack holds plain files only.`,
        );
      const at = join(folder, path);
      return { path, bytes: lstatSync(at).size, digest: hashFile(at) };
    })
    .sort((a, b) => compareUtf8(a.path, b.path));
}

function isOwn(path: string): boolean {
  return path === PACK_FILE || path.startsWith(`${SIGNATURES}/`);
}

/** Everything below a folder except folders; links are listed, never followed. */
function walk(folder: string, under = ""): { path: string; isFile: boolean }[] {
  return readdirSync(join(folder, under), { withFileTypes: true }).flatMap((entry) => {
    const path = under === "" ? entry.name : `${under}/${entry.name}`;
    return entry.isDirectory() ? walk(folder, path) : [{ path, isFile: entry.isFile() }];
  });
}

function hashFile(path: string): Digest {
  const hash = createHash("sha256");
  const buffer = Buffer.allocUnsafe(1 << 20);
  const file = openSync(path, "r");
  try {
    for (let read = readSync(file, buffer); read > 0; read = readSync(file, buffer))
      hash.update(buffer.subarray(0, read));
  } finally {
    closeSync(file);
  }
  return `sha256:${hash.digest("hex")}` as Digest;
}
