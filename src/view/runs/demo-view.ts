/** Renders the demo for a terminal: one line for each stage, and one screen at the end, from the summary alone. */
import { type Paint, page, plural, short, table } from "../format.ts";
import { refusalsByCause } from "../judge/refusal-text.ts";
import type { DemoSummary, DemoWindow, StageTime } from "./demo-summary.ts";

export function renderDemo(
  summary: DemoSummary,
  { paint, folder, columns }: { paint: Paint; folder: string; columns?: number | undefined },
): string {
  const { windows, learners, rewardAnalysis } = summary;
  return [
    paint.bold("Reward by window"),
    "\n",
    rewardPlot(summary),
    "\n",
    table(windows, [
      { title: "WINDOW", align: "right", cell: ({ index }) => String(index) },
      { title: "ROLLOUTS", align: "right", cell: ({ collected }) => String(collected) },
      { title: "COLLECTED BY", cell: ({ collectedBy }) => collectedBy },
      { title: "OBSERVED REWARD, 95 %", cell: ({ reward }) => withInterval(reward.mean, reward.interval) },
      { title: "$ PER 1000", align: "right", cell: ({ costUsd }) => (1000 * costUsd).toFixed(2) },
      { title: "GATE", cell: gateOf },
      { title: "SERVES", cell: ({ serves }) => serves },
      { title: "EXACT VALUE", align: "right", cell: ({ servedValue }) => number(servedValue) },
    ]),
    "\n",
    table(learners, [
      { title: `LEARNER, WINDOW ${windows.length}`, cell: ({ name }) => name },
      {
        title: "ESTIMATE FROM THE LOG",
        cell: ({ estimate, interval }) => (estimate === undefined ? "—" : withInterval(estimate, interval!)),
      },
      { title: "EXACT VALUE", align: "right", cell: ({ exactValue }) => number(exactValue) },
      { title: "GATE", cell: ({ passed, released }) => (released ? "released" : passed ? "pass" : "refuse") },
    ]),
    "\n",
    page(refusalLines(summary, columns)),
    page([
      `always one model, estimates from the log: ${rewardAnalysis.map(({ model, value }) => `${model} ${number(value)}`).join(", ")}`,
      ledgerLine(summary),
      timeLine(summary.stages),
    ]),
    page(endLines(summary, folder)),
  ].join("");
}

/** Line for a stage that has ended. */
export function renderStage({ window, stage, ms }: StageTime, windows: number, facts = ""): string {
  const where = window === 0 ? "" : `window ${window} of ${windows}: `;
  return `${seconds(ms).padStart(7)}  ${where}${stage}${facts === "" ? "" : `, ${facts}`}`;
}

const ROWS = 8;
const COLUMN = 14;

/** Plot of observed means with their intervals, the exact value of the serving policy after each window, and the
 *  optimum. */
export function rewardPlot({ windows, optimum }: Pick<DemoSummary, "windows" | "optimum">): string {
  const all = windows.flatMap(({ reward: { interval }, servedValue }) => [
    interval.low,
    interval.high,
    servedValue,
  ]);
  const [low, high] = [Math.min(optimum, ...all), Math.max(optimum, ...all)];
  const place = (value: number) => Math.round(((high - value) / (high - low || 1)) * (ROWS - 1));
  const width = windows.length * COLUMN;
  const rows = Array.from({ length: ROWS }, (_, y) =>
    Array<string>(width).fill(y === place(optimum) ? "┄" : " "),
  );
  windows.forEach(({ reward: { mean, interval }, servedValue }, i) => {
    const x = i * COLUMN + COLUMN / 2 - 1;
    for (let y = place(interval.high); y <= place(interval.low); y++) rows[y]![x] = "│";
    rows[place(mean)]![x] = "●";
    rows[place(servedValue)]![x + 3] = "◆";
  });
  const label = (y: number) => number(high - ((high - low) * y) / (ROWS - 1));
  const lines = rows.map((row, y) => {
    const end = y === place(optimum) ? ` known optimum ${number(optimum)}` : "";
    return `${label(y).padStart(8)} ┤${row.join("").padEnd(width)}${end}`.trimEnd();
  });
  const names = windows
    .map(({ index }) => `window ${index}`.padStart(COLUMN / 2 + 4).padEnd(COLUMN))
    .join("");
  const legend = "● observed reward with 95 % interval   ◆ exact value of the policy that serves";
  return `${lines.join("\n")}\n${" ".repeat(10)}${names.trimEnd()}\n${" ".repeat(10)}${legend}\n`;
}

function gateOf({ outcome, learners }: DemoWindow): string {
  const passed = learners.filter(({ passed: each }) => each).length;
  return `${outcome}, ${passed} of ${learners.length} pass`;
}

/** One line for all policies that a window refused for the same cause. The report has all figures. A file or a pipe gets
 *  the whole line; on a terminal it is cut to the width. */
function refusalLines({ windows }: DemoSummary, columns = Number.POSITIVE_INFINITY): string[] {
  const lines = windows.flatMap(({ index, refusals }) =>
    refusalsByCause(refusals).map(
      ({ names, reasons }) => `in window ${index} the gate refused ${names}: ${reasons.join(" ")}`,
    ),
  );
  return lines.map((line) => (line.length > columns ? `${line.slice(0, columns - 1)}…` : line));
}

function ledgerLine({ ledger: { considered, admitted, excluded } }: DemoSummary): string {
  const parts = [
    ...admitted.filter(({ rollouts }) => rollouts > 0).map(({ use, rollouts }) => `${rollouts} to ${use}`),
    ...excluded.map(({ reason, rollouts }) => `${rollouts} excluded (${reason})`),
  ];
  return `${plural(considered, "rollout")}: ${parts.join(", ")}`;
}

/** Sums the times of equal stages, in the order of their first occurrence; a stage without time is left out. */
function timeLine(stages: readonly StageTime[]): string {
  const sums = new Map<string, number>();
  for (const { stage, ms } of stages) sums.set(stage, (sums.get(stage) ?? 0) + ms);
  const total = stages.reduce((sum, { ms }) => sum + ms, 0);
  const parts = [...sums].filter(([, ms]) => ms >= 50).map(([stage, ms]) => `${stage} ${seconds(ms)}`);
  return `${seconds(total)} in all: ${parts.join(", ")}`;
}

function endLines(summary: DemoSummary, folder: string): string[] {
  const { behaviourValue, servedValue, optimum, gapClosed, windows, pack, replay, digest, seed } = summary;
  return [
    `${windows.at(-1)!.serves} serves. Its exact value is ${number(servedValue)}: ${Math.round(100 * gapClosed)} % of the way from ${number(behaviourValue)} (window 1) to the optimum ${number(optimum)}.`,
    `replay store ${replay.valid ? "valid" : "NOT VALID"}, ${plural(replay.chains, "chain")}; pack ${short(pack.digest as never)} ${pack.verified ? "verified" : "NOT VERIFIED"}; run digest ${short(digest as never)} (seed ${seed})`,
    `${folder}: report.html (charts, every refusal), loop.yaml, book, replay, pack`,
  ];
}

function withInterval(value: number, { low, high }: { low: number; high: number }): string {
  return `${number(value)} [${number(low)}, ${number(high)}]`;
}

function number(value: number): string {
  return value.toFixed(4);
}

function seconds(ms: number): string {
  return `${(ms / 1000).toFixed(1)} s`;
}
