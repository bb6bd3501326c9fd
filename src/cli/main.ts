#!/usr/bin/env node
/** Runs the `rollbook` command. The build writes the help that lists every command into a file, so printing it loads
 *  nothing else. */
import { existsSync, readFileSync } from "node:fs";

const words = process.argv.slice(2);
const help = new URL("./help.txt", import.meta.url);
if (words.length === 1 && /^(-h|--help|help)$/.test(words[0]!) && existsSync(help))
  process.stdout.write(readFileSync(help));
else {
  const [{ run }, { processIo }] = await Promise.all([import("./run.ts"), import("./io.ts")]);
  process.exitCode = await run(words, processIo());
}
