/** Opens a pack as a folder. A tar file is unpacked to a temporary folder, which is removed afterwards. */
import { mkdtempSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { readTar } from "../../keep/pack/index.ts";

export async function withPackFolder<T>(path: string, use: (folder: string) => Promise<T>): Promise<T> {
  if (statSync(path).isDirectory()) return use(path);
  const folder = mkdtempSync(join(tmpdir(), "rollbook-pack-"));
  try {
    readTar(path, folder);
    return await use(folder);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}
