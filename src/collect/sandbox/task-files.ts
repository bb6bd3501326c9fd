/** Lays a task's files into the directory that will be shown as /task, in place of the last task's.
 *  The directory itself stays: a container may have it mounted. */
import { mkdir, readdir, rm, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import type { SandboxTask } from "./sandbox.ts";

export async function layFiles(directory: string, files: SandboxTask["files"]): Promise<void> {
  for (const name of await readdir(directory))
    await rm(join(directory, name), { recursive: true, force: true });
  for (const [path, content] of files) {
    if (path.includes("/")) await mkdir(join(directory, dirname(path)), { recursive: true });
    await writeFile(join(directory, path), content);
  }
}
