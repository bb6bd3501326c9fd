/** Checks if a program is on the PATH, without starting a process. */
import { accessSync, constants } from "node:fs";
import { delimiter, join } from "node:path";

/** @param {string} program */
export function onPath(program) {
  return (process.env.PATH ?? "").split(delimiter).some((folder) => isExecutable(join(folder, program)));
}

function isExecutable(file) {
  try {
    accessSync(file, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}
