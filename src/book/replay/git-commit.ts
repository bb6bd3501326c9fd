/** Finds the commit that a command runs at, for manifests: from the environment, or from the surrounding work tree.
 *  Reads .git itself, so git need not be installed. Does not tell if the tree has uncommitted changes. */
import { existsSync, readFileSync } from "node:fs";
import { dirname, join, resolve } from "node:path";

const COMMIT = /^[0-9a-f]{40}([0-9a-f]{24})?$/;

export function gitCommitOf(
  { env }: { readonly env: Readonly<Record<string, string | undefined>> },
  from = process.cwd(),
): string | undefined {
  return env.ROLLBOOK_GIT_COMMIT ?? env.GITHUB_SHA ?? commitOfWorkTree(from);
}

function commitOfWorkTree(from: string): string | undefined {
  const folder = gitFolder(from);
  if (folder === undefined) return undefined;
  const head = read(join(folder, "HEAD"));
  const ref = head?.match(/^ref: (.+)$/)?.[1];
  if (ref === undefined) return commit(head);
  // A linked work tree has its own HEAD; its branches are stored in the shared folder.
  const shared = resolve(folder, read(join(folder, "commondir")) ?? ".");
  return commit(read(join(shared, ref))) ?? packedRef(shared, ref);
}

/** `.git` is a folder or, in a linked work tree, a file that names one. */
function gitFolder(from: string): string | undefined {
  for (let at = resolve(from); ; at = dirname(at)) {
    const place = join(at, ".git");
    if (existsSync(join(place, "HEAD"))) return place;
    const linked = read(place)?.match(/^gitdir: (.+)$/)?.[1];
    if (linked !== undefined) return resolve(at, linked);
    if (at === dirname(at)) return undefined;
  }
}

function packedRef(folder: string, ref: string): string | undefined {
  const line = read(join(folder, "packed-refs"))
    ?.split("\n")
    .find((each) => each.endsWith(` ${ref}`));
  return commit(line?.split(" ")[0]);
}

const commit = (text: string | undefined) => (text !== undefined && COMMIT.test(text) ? text : undefined);

/** Undefined if the file cannot be read: a manifest without a commit is correct, and an error here would not help. */
function read(path: string): string | undefined {
  try {
    return readFileSync(path, "utf8").trim();
  } catch {
    return undefined;
  }
}
