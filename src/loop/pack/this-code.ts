/** Describes this process for a pack: the code, Node and the machine. */
import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync, readFileSync } from "node:fs";
import { arch, availableParallelism, cpus, platform, totalmem } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { type Digest, given } from "../../base/index.ts";
import type { RunPack } from "../../contract/index.ts";

/** The sources and the build both lie three folders below the package. */
const PACKAGE = fileURLToPath(new URL("../../../", import.meta.url));

export function thisCode(): RunPack["code"] {
  const { version } = JSON.parse(readFileSync(join(PACKAGE, "package.json"), "utf8")) as { version: string };
  // An installed package has no Git history of its own. The user's repository around it does not describe it.
  if (!existsSync(join(PACKAGE, ".git"))) return { version };
  const commit = git("rev-parse", "HEAD");
  const changes = git("status", "--porcelain", "--untracked-files=no");
  return {
    version,
    ...given({ commit, dirty: changes === undefined ? undefined : changes !== "", lockfile: lockfile() }),
  };
}

export function thisMachine(): RunPack["machine"] {
  return {
    ...{ platform: platform(), arch: arch(), cpu: cpus()[0]?.model.trim() ?? "unknown" },
    ...{ cores: availableParallelism(), memoryBytes: totalmem() },
  };
}

function lockfile(): Digest | undefined {
  const path = join(PACKAGE, "package-lock.json");
  if (!existsSync(path)) return undefined;
  return `sha256:${createHash("sha256").update(readFileSync(path)).digest("hex")}` as Digest;
}

function git(...words: string[]): string | undefined {
  try {
    return execFileSync("git", words, {
      ...{ cwd: PACKAGE, encoding: "utf8", timeout: 10_000 },
      stdio: ["ignore", "pipe", "ignore"],
    }).trim();
  } catch {
    return undefined;
  }
}
