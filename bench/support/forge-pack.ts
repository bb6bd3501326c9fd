/** Rewrites a pack with other entries and valid checksums and footer, as a forger without a key can. */
import { readFileSync, writeFileSync } from "node:fs";
import { canonicalize } from "../../src/base/canonical-json.ts";
import { encodeEntry, PACK_FOOTER_KIND, PackChain, PackReader } from "../../src/store/pack/index.ts";

export interface ForgedEntry {
  readonly kind: string;
  readonly payload: Uint8Array;
}

/** The entries of a pack, with the header first and without the footer. */
export async function entriesOf(path: string): Promise<ForgedEntry[]> {
  const reader = await PackReader.open(path);
  const entries: ForgedEntry[] = [];
  try {
    for (let step = reader.next(); step !== undefined; step = reader.next()) {
      if (step === "more") await reader.more();
      else if (step.type === "damage") throw new Error(`${path} is not sound: ${step.message}`);
      else if (step.kind !== PACK_FOOTER_KIND)
        entries.push({ kind: step.kind, payload: Buffer.from(step.bytes) });
    }
  } finally {
    await reader.close();
  }
  return entries;
}

export function forgePack(path: string, entries: readonly ForgedEntry[]): void {
  const chain = new PackChain();
  const parts: Buffer[] = [];
  let offset = 0;
  for (const entry of entries) {
    const { bytes, digest } = encodeEntry(entry, offset);
    chain.add(digest);
    parts.push(bytes);
    offset += bytes.length;
  }
  const payload = Buffer.from(canonicalize(chain.footer()));
  parts.push(encodeEntry({ kind: PACK_FOOTER_KIND, payload }, offset).bytes);
  writeFileSync(path, Buffer.concat(parts));
}

/** Runs `work` while the file is changed or removed, then restores it. */
export async function whileForged<T>(path: string, forge: () => void, work: () => Promise<T>): Promise<T> {
  const original = readFileSync(path);
  try {
    forge();
    return await work();
  } finally {
    writeFileSync(path, original);
  }
}
