/** Runs a loop and prints JSON Lines: the time of every stage, and the loop's log.
 *  node stage-times.mjs loop.yaml [--resume] [--seconds N] in a built checkout; ROLLBOOK_DIST names another build. */
import { readFileSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { performance } from "node:perf_hooks";
import { fileURLToPath, pathToFileURL } from "node:url";

const dist = process.env.ROLLBOOK_DIST ?? fileURLToPath(new URL("../../dist", import.meta.url));
const { parseLoopConfig, runLoop } = await import(pathToFileURL(join(dist, "loop", "index.js")).href);
const path = resolve(process.argv[2]);
const config = parseLoopConfig(readFileSync(path, "utf8"), path, dirname(path));
const say = (facts) => process.stdout.write(`${JSON.stringify(facts)}\n`);
const seconds = Number(process.argv[process.argv.indexOf("--seconds") + 1] || 0);
const limit = process.argv.includes("--seconds") ? AbortSignal.timeout(seconds * 1000) : undefined;
let last = performance.now();
let cpu = process.cpuUsage();
let main = mainThreadMs();
const { state, done } = await runLoop({
  ...{ config, book: config.book, how: process.argv.includes("--resume") ? "resume" : "start" },
  ...(limit === undefined ? {} : { signal: limit }),
  log: (line) => say({ log: line }),
  onWindow(window) {
    const now = performance.now();
    const used = process.cpuUsage(cpu);
    const { step, envelope } = window.at(window.state);
    say({
      ...{ window: window.number, state: window.state, ms: round(now - last) },
      cpuMs: round((used.user + used.system) / 1000),
      mainMs: round(mainThreadMs() - main),
      ...{
        rewardMean: step.rewardMean,
        heldOut: step.estimate?.value,
        revision: step.revision?.id,
        batch: envelope.batch,
      },
    });
    last = now;
    cpu = process.cpuUsage();
    main = mainThreadMs();
  },
});
say({ done, windows: state.windows.length });

/** Processor time of the serving thread: with free cores, it bounds the elapsed time. 0 without /proc. */
function mainThreadMs() {
  try {
    return Number(readFileSync(`/proc/self/task/${process.pid}/schedstat`, "latin1").split(" ")[0]) / 1e6;
  } catch {
    return 0;
  }
}

function round(value) {
  return Math.round(value * 10) / 10;
}
