import { spawnSync } from "node:child_process";
import { onPath } from "../on-path.mjs";

export const name = "sandbox (bubblewrap)";
export const packages = ["bubblewrap", "procps", "python3", "util-linux"];
/** Tasks over databases use Python's sqlite3, which the minimal package lacks. */
export const check = () =>
  ["bwrap", "pgrep", "python3", "setpriv"].every(onPath) &&
  spawnSync("python3", ["-c", "import sqlite3"]).status === 0;
