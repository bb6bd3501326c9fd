/** Replaces the files of the last task with a task's files, in the directory that is mounted as /task.
 *  The directory itself stays, because a container may have mounted it. */
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
