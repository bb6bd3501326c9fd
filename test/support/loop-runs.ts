/** Loops of the small world by the command line, each with its own book. */
import { cpSync } from "node:fs";
import { join } from "node:path";
import { systemClock } from "../../src/base/clock.ts";
import type { LoopStatus } from "../../src/view/runs/loop-view.ts";
import { Cli } from "./cli.ts";
import { writeConfig, writeLoop } from "./loop-world.ts";
import { madeOnce } from "./made-once.ts";

export function withLoop(config: object): { cli: Cli; config: string } {
  const cli = new Cli({ clock: systemClock });
  return { cli, config: writeLoop(cli.folder, config) };
}

/** A loop after its first window, which several tests start from. `name` identifies `config`; each name runs once. */
export async function afterWindow(
  name: string,
  config: object,
): Promise<{ cli: Cli; config: string; resume(windows: number): Promise<LoopStatus> }> {
  const made = await madeOnce(`loop-${name}`, async (folder) => {
    const { cli, config: path } = withLoop({ ...config, windows: 1 });
    await cli.ok(`run start --config ${path}`);
    cpSync(cli.folder, folder, { recursive: true });
  });
  const cli = new Cli({ clock: systemClock });
  cpSync(made, cli.folder, { recursive: true });
  return {
    ...{ cli, config: join(cli.folder, "loop.yaml") },
    resume(windows) {
      writeConfig(cli.folder, { ...config, windows });
      return statusOf(cli, `resume --config ${join(cli.folder, "loop.yaml")}`);
    },
  };
}

export async function statusOf(cli: Cli, words: string): Promise<LoopStatus> {
  return (await cli.json(`run ${words}`))[0];
}
