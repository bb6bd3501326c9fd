/** A folder with its own home, for tests that call the library as a user does: keys come from the environment. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { onTestFinished, vi } from "vitest";

export function libraryHome(): { readonly folder: string; path(name: string): string } {
  const folder = mkdtempSync(join(tmpdir(), "rollbook-library-"));
  vi.stubEnv("ROLLBOOK_HOME", join(folder, "home"));
  onTestFinished(() => {
    vi.unstubAllEnvs();
    rmSync(folder, { recursive: true, force: true });
  });
  return { folder, path: (name) => join(folder, name) };
}
