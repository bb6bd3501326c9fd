/** Implements `rollbook demo`: the whole loop on simulated tasks, from an empty folder to a verified pack; and the
 *  tour. */
import { existsSync, readFileSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import type { Command } from "commander";
import { given, RollbookError } from "../../../base/index.ts";
import { wrongUsage } from "../../../book/decisions/index.ts";
import {
  begunDemoFolder,
  type DemoSize,
  FULL_SIZE,
  newDemoFolder,
  REPORT_FILE,
  runDemo,
  writeDemo,
} from "../../../loop/index.ts";
import { writeAtomically } from "../../../store/index.ts";
import { jsonLine, paint } from "../../../view/format.ts";
import type { DemoSummary } from "../../../view/runs/demo-summary.ts";
import { renderDemo, renderStage } from "../../../view/runs/demo-view.ts";
import { renderLoopProgress, transitionFacts } from "../../../view/runs/loop-view.ts";
import { addCommand, seedOption } from "../../command.ts";
import { interruptible } from "../../interrupted.ts";
import { hasColor, type Io } from "../../io.ts";
import { positiveWhole } from "../../options/numbers.ts";
import { playTour } from "./tour.ts";

interface DemoFlags extends Partial<DemoSize> {
  out?: string;
  resume?: true;
  tour?: true;
  report?: string;
  book?: string;
  seed?: bigint;
  json?: true;
}

export function addDemo(program: Command, io: Io): void {
  addCommand(program, "demo", {
    summary: "run the whole loop on simulated tasks, in about two minutes",
    description: `Run the whole loop on simulated tasks: ${FULL_SIZE.windows} windows of ${FULL_SIZE.rollouts}
rollouts. It generates tasks, and checks that each can be solved. An agent works on them in a sandbox, through the gateway, while a policy
chooses the model. Each window trains four learners and judges them off-policy. Of those that pass the gate, it
releases the one with the best lower bound. The summary compares them with the known optimum. The folder keeps the
configuration, the book, the replay store, a verified pack and report.html. Needs no key, network or GPU. --tour
explains the records instead, scene by scene.`,
    examples: [
      "rollbook demo",
      "rollbook demo --report demo.html",
      "rollbook demo --resume",
      "rollbook demo --tour",
    ],
    book: false,
  })
    .option("--out <dir>", "a new folder for the demo (default: rollbook-demo, or the next free number)")
    .option("--resume", "continue a demo that was stopped or killed")
    .option("--windows <n>", `windows of the loop (default: ${FULL_SIZE.windows})`, positiveWhole)
    .option(
      "--rollouts <n>",
      `rollouts of a window, an even number from 40 on (default: ${FULL_SIZE.rollouts})`,
      positiveWhole,
    )
    .addOption(seedOption("seed of all draws (default: 1)"))
    .option("--report <file>", "also write the report to this file; never overwritten")
    .option("--tour", "play thirteen scenes that explain the records, on a small book")
    .option("--book <dir>", "with --tour: keep the book here (default: a temporary one)")
    .action((flags: DemoFlags) => demo(io, flags));
}

async function demo(io: Io, flags: DemoFlags): Promise<void> {
  const { out, resume, windows, rollouts, tour, book, seed, json, report } = flags;
  const sized = windows !== undefined || rollouts !== undefined;
  if (tour === true) {
    if (resume === true || sized || out !== undefined || report !== undefined)
      throw wrongUsage("--tour takes no --out, --resume, --report, --windows or --rollouts. Remove them");
    return playTour(io, { seed: seed ?? 1n, ...given({ book, json }) });
  }
  if (book !== undefined) throw wrongUsage("--book has no effect without --tour. Name the folder with --out");
  if (resume === true && (sized || seed !== undefined))
    throw wrongUsage(
      "--resume continues a demo with its own seed and size. Remove --seed, --windows and --rollouts",
    );
  if (report !== undefined) requireFreeFile(report);
  const folder = resume === true ? begunDemoFolder(out) : newDemoFolder(out);
  const size = { ...FULL_SIZE, ...given({ windows, rollouts }) };
  if (resume !== true) writeDemo(folder, seed ?? 1n, size);
  const summary = await play(io, folder);
  if (report !== undefined)
    writeAtomically(report, readFileSync(join(folder, REPORT_FILE)), `${report}.part`);
  const look = { paint: paint(hasColor(io)), folder, columns: io.columns };
  io.out(json === true ? jsonLine(summary) : renderDemo(summary, look));
  requireShown(summary);
}

/** Refuses an existing file before the work, not after it. */
function requireFreeFile(path: string): void {
  if (existsSync(path))
    throw new RollbookError("exists", { path }, `${path} already exists. Name another file with --report.`);
  if (!existsSync(dirname(resolve(path))))
    throw new RollbookError("no-file", { path }, `the folder of ${path} does not exist. Create it first.`);
}

function play(io: Io, folder: string): Promise<DemoSummary> {
  const clear = io.live ? "\r\u001b[K" : "";
  io.err(`the demo is in ${folder}\n`);
  return interruptible((signal) =>
    runDemo({
      ...{ folder, clock: io.clock, signal },
      log: (line) => io.err(`${clear}${line}\n`),
      onStage: (stage, { status, windows }) => {
        const facts = status === undefined ? "" : transitionFacts(status);
        io.err(`${clear}${renderStage(stage, windows, facts)}\n`);
      },
      ...(io.live
        ? {
            onProgress: (window, progress, windows) =>
              io.err(`${clear}${renderLoopProgress({ window, ...progress }, windows)}`),
          }
        : {}),
    }),
  );
}

/** Throws unless the demo shows its expected results. A demo of full size must also close half of the gap. */
function requireShown({ pack, replay, gapClosed, rollouts }: DemoSummary): void {
  const full = rollouts >= FULL_SIZE.windows * FULL_SIZE.rollouts;
  const missing = [
    ...(pack.verified ? [] : ["a pack that verifies"]),
    ...(replay.valid ? [] : ["a valid replay store"]),
    ...(full && gapClosed < 0.5 ? ["a served policy that closes half of the gap to the optimum"] : []),
  ];
  if (missing.length === 0) return;
  throw new RollbookError(
    "demo-failed",
    { missing },
    `the demo could not show ${missing.join(", ")}. Please report this.`,
  );
}
