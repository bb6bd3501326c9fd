/** Chooses the folder of a demo.
 *  In: the options. Out: a folder, in the current directory if none is named. A new demo takes the first free name;
 *  `resume` takes the last demo that has not ended. Overwrites nothing. */
import { existsSync } from "node:fs";
import { join } from "node:path";
import { RollbookError } from "../../base/index.ts";
import { hasDemo } from "./demo-config.ts";

const NAME = "rollbook-demo";
export const PACK_FOLDER = "pack";

export function newDemoFolder(out: string | undefined): string {
  if (out !== undefined) {
    if (existsSync(out))
      throw new RollbookError(
        "exists",
        { out },
        `${out} already exists. ${hasDemo(out) ? `${isFinished(out) ? "Print its demo again" : "Continue its demo"} with ${resume(out)}, or choose` : "Choose"} another folder.`,
      );
    return out;
  }
  for (let i = 1; ; i++) if (!existsSync(numbered(i))) return numbered(i);
}

export function begunDemoFolder(out: string | undefined): string {
  if (out !== undefined) {
    if (hasDemo(out)) return out;
    throw noDemo(out);
  }
  let found: string | undefined;
  let finished: string | undefined;
  for (let i = 1; existsSync(numbered(i)); i++) {
    const folder = numbered(i);
    if (!hasDemo(folder)) continue;
    if (isFinished(folder)) finished = folder;
    else found = folder;
  }
  if (found === undefined)
    throw new RollbookError(
      "no-demo",
      { folder: NAME },
      `this folder has no unfinished demo. Start one with \`rollbook demo\`${finished === undefined ? "" : `, or print the finished one again with ${resume(finished)}`}.`,
    );
  return found;
}

function isFinished(folder: string): boolean {
  return existsSync(join(folder, PACK_FOLDER));
}

function resume(folder: string): string {
  return `\`rollbook demo --resume --out ${folder}\``;
}

function numbered(i: number): string {
  return i === 1 ? NAME : `${NAME}-${i}`;
}

function noDemo(folder: string): RollbookError {
  return new RollbookError(
    "no-demo",
    { folder },
    `${folder} holds no demo. Start one with \`rollbook demo\`, or name its folder with --out.`,
  );
}
