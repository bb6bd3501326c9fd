/** Loops of the small world by the command line, each with a book of its own. */
import { systemClock } from "../../src/base/clock.ts";
import type { LoopStatus } from "../../src/view/runs/loop-view.ts";
import { Cli } from "./cli.ts";
import { writeLoop } from "./loop-world.ts";

export function withLoop(config: object): { cli: Cli; config: string } {
  const cli = new Cli({ clock: systemClock });
  return { cli, config: writeLoop(cli.folder, config) };
}

export async function statusOf(cli: Cli, words: string): Promise<LoopStatus> {
  return (await cli.json(`run ${words}`))[0];
}
