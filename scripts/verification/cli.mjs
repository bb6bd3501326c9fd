/** Runs the built command line in a folder, as a user does. Out: stdout, or stderr of a command that must fail.
 *  Throws with the printed output if the command does not end as expected. */
import { spawnSync } from "node:child_process";
import { fileURLToPath } from "node:url";

const MAIN = fileURLToPath(new URL("../../dist/cli/main.js", import.meta.url));

export function rollbook(folder, command, { exit = 0 } = {}) {
  const { status, stdout, stderr } = spawnSync(process.execPath, [MAIN, ...command.split(" ")], {
    cwd: folder,
    encoding: "utf8",
    env: { PATH: process.env.PATH, HOME: folder, ROLLBOOK_HOME: `${folder}/keys` },
    maxBuffer: 256 * 1024 * 1024,
  });
  if (status !== exit)
    throw new Error(`rollbook ${command}: exit ${status}. ${stderr.trim().split("\n").at(-1)}`);
  return exit === 0 ? stdout : stderr;
}

export function json(folder, command, options) {
  const lines = rollbook(folder, `${command} --json`, options).trim().split("\n");
  return JSON.parse(lines.at(-1));
}
