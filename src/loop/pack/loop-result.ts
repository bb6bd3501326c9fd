/** The result of a finished loop as its pack keeps it: the windows without anything of the machine that ran them, such as
 *  folders. Sealing writes it; verifying and running again compare with it, so all three must make it here. */
import { canonicalize } from "../../base/index.ts";
import type { LoopConfig } from "../config.ts";
import { type RunState, runDigest } from "../fold.ts";
import { windowStatus } from "../status.ts";

export function loopResult(state: RunState, { windows: total }: Pick<LoopConfig, "windows">): string {
  const { run, windows } = state;
  const digest = runDigest(state, total);
  return canonicalize({ schema: "rollbook.loop-result.v1", run, windows: windows.map(windowStatus), digest });
}
