/** Runs the demo: a loop from an empty folder to a verified pack.
 *  In: a folder, a seed. Out: its facts. It runs the same code as `run start`, `reward analyze`, `replay validate`,
 *  `pack seal` and `pack verify`. A killed demo continues from the content of its folder, and ends with the same
 *  digests. */
import { existsSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { type Clock, RollbookError } from "../../base/index.ts";
import { type Identity, identityOf } from "../../book/collect/index.ts";
import { keyringAt } from "../../book/open/index.ts";
import { validateReplay } from "../../book/replay/index.ts";
import type { Progress } from "../../collect/rollout/index.ts";
import { renderReportPage } from "../../view/report/render-report.ts";
import type { DemoSummary, StageTime } from "../../view/runs/demo-summary.ts";
import type { WindowStatus } from "../../view/runs/loop-view.ts";
import { brokenLinks, sealLoopPack, verifyPack } from "../pack/index.ts";
import { runLoop } from "../run-loop.ts";
import { windowStatus } from "../status.ts";
import { ensureTasks } from "../world/index.ts";
import { readDemo } from "./demo-config.ts";
import { PACK_FOLDER } from "./demo-folder.ts";
import { summarizeDemo } from "./summarize.ts";

export const REPORT_FILE = "report.html";

interface DemoRequest {
  /** Folder that `writeDemo` wrote the configuration to. */
  readonly folder: string;
  readonly clock: Clock;
  readonly signal?: AbortSignal | undefined;
  readonly log?: ((line: string) => void) | undefined;
  /** Called at the end of every stage; `windows` is the total number of windows. */
  readonly onStage?: ((stage: StageTime, of: { windows: number; status?: WindowStatus }) => void) | undefined;
  readonly onProgress?: ((window: number, progress: Progress, windows: number) => void) | undefined;
}

export async function runDemo(request: DemoRequest): Promise<DemoSummary> {
  const { folder, clock } = request;
  const { file, config } = readDemo(folder);
  if (config.world.kind !== "simulator" || config.book === undefined || config.replay === undefined)
    throw notDemo(file);
  const { world, book, replay } = config;
  const stages = new StageClock(clock, (stage) => request.onStage?.(stage, { windows: config.windows }));
  // The demo has its own key, because it writes nothing outside its folder.
  const identity = identityOf(keyringAt(join(folder, "keys")));
  await stages.time("generate and prove tasks", () => ensureTasks(world));
  await runWindows(request, identity);
  const report = await stages.time("validate the replay store", () => validateReplay(replay));
  const pack = join(folder, PACK_FOLDER);
  await stages.time("seal the pack", () => sealOnce(file, { pack, identity, clock }));
  const verified = await stages.time("verify the pack", () => verifyPack(pack));
  const summary = await stages.time("summarize", () =>
    summarizeDemo(
      { config, world, book },
      {
        replay: { path: replay, chains: report.rows.chains ?? 0, valid: report.valid },
        pack: { path: pack, digest: verified.digest, verified: brokenLinks(verified.chain).length === 0 },
      },
    ),
  );
  const [tasks, ...after] = stages.ended;
  const all = { ...summary, stages: [tasks!, ...summary.stages, ...after] };
  writeFileSync(join(folder, REPORT_FILE), renderReportPage(all));
  return all;
}

async function runWindows(
  { folder, clock, signal, log, onStage, onProgress }: DemoRequest,
  identity: Identity,
): Promise<void> {
  const { config } = readDemo(folder);
  const { windows } = config;
  let last = clock.nowMs();
  const { done } = await runLoop({
    ...{ config, book: config.book!, how: "start-or-resume", identity: () => identity, clock, signal, log },
    onProgress: (window, progress) => onProgress?.(window, progress, windows),
    onWindow(window) {
      const now = clock.nowMs();
      const stage = { window: window.number, stage: window.state!, ms: now - last };
      onStage?.(stage, { windows, status: windowStatus(window) });
      last = now;
    },
  });
  if (done) return;
  throw new RollbookError(
    "demo-stopped",
    { folder },
    `the demo in ${folder} was stopped. Continue it with \`rollbook demo --resume\`.`,
  );
}

/** Written to a temporary path and renamed: a pack is complete or does not exist. */
async function sealOnce(
  file: string,
  { pack, identity, clock }: { pack: string; identity: Identity; clock: Clock },
): Promise<void> {
  if (existsSync(pack)) return;
  const out = `${pack}.part`;
  rmSync(out, { recursive: true, force: true });
  await sealLoopPack(file, { out, signer: identity.signer, clock });
  renameSync(out, pack);
}

class StageClock {
  readonly ended: StageTime[] = [];
  readonly #clock: Clock;
  readonly #tell: (stage: StageTime) => void;

  constructor(clock: Clock, tell: (stage: StageTime) => void) {
    this.#clock = clock;
    this.#tell = tell;
  }

  async time<T>(stage: string, work: () => T | Promise<T>): Promise<T> {
    const from = this.#clock.nowMs();
    const result = await work();
    const ended = { window: 0, stage, ms: this.#clock.nowMs() - from };
    this.ended.push(ended);
    this.#tell(ended);
    return result;
  }
}

function notDemo(file: string): RollbookError {
  return new RollbookError(
    "no-demo",
    { file },
    `${file} is not the configuration of a demo. Start a new one.`,
  );
}
