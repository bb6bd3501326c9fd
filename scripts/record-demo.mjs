/** Records the demo's terminal: an asciinema cast and an animated SVG, both generated and never edited by hand.
 *  `npm run demo:record` records `rollbook demo`; `-- --out NAME -- COMMAND…` records any command. Writes
 *  docs/images/NAME.cast and docs/images/NAME.svg. The command runs in an empty folder. If it leaves a report.html, the
 *  first chart becomes docs/images/NAME-report.svg.
 *  Needs `script` of util-linux, which gives the command a terminal. */
import { spawn } from "node:child_process";
import {
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { renderRecording } from "./record/animated-svg.mjs";
import { TerminalScreen } from "./record/terminal-screen.mjs";

const COLUMNS = 120;
const ROWS = 42;
/** Longer pauses are shortened to this length, in both files. */
const LONGEST_PAUSE_S = 1;
const MOST_BYTES = 500_000;

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const { values, positionals } = parseArgs({
  options: { out: { type: "string", default: "demo" }, title: { type: "string" } },
  allowPositionals: true,
});
const command =
  positionals.length > 0 ? positionals.join(" ") : `node ${join(root, "dist/cli/main.js")} demo`;
const title = values.title ?? (positionals.length > 0 ? command : "rollbook demo");

const work = mkdtempSync(join(tmpdir(), "rollbook-record-"));
const { code, events } = await record(command);
const picture = reportChart(work);
rmSync(work, { recursive: true, force: true });
if (code !== 0) fail(`${command} exited with ${code}; nothing is written`);
const screen = new TerminalScreen({ columns: COLUMNS, rows: ROWS });
const frames = events.map(([at, data]) => {
  screen.write(data);
  return { at, lines: screen.lines() };
});
const svg = renderRecording(frames, { columns: COLUMNS, rows: ROWS, title });
if (Buffer.byteLength(svg) > MOST_BYTES)
  fail(`the SVG has ${Buffer.byteLength(svg)} bytes, at most ${MOST_BYTES} are allowed`);
const header = { version: 2, width: COLUMNS, height: ROWS, title, env: { TERM: "xterm-256color" } };
const cast = [header, ...events.map(([at, data]) => [at, "o", data])].map(
  (line) => `${JSON.stringify(line)}\n`,
);
const folder = join(root, "docs/images");
mkdirSync(folder, { recursive: true });
for (const [name, text] of [
  [`${values.out}.cast`, cast.join("")],
  [`${values.out}.svg`, svg],
  ...(picture === undefined ? [] : [[`${values.out}-report.svg`, picture]]),
]) {
  writeFileSync(join(folder, `${name}.part`), text);
  renameSync(join(folder, `${name}.part`), join(folder, name));
  console.log(`docs/images/${name}: ${Buffer.byteLength(text)} bytes`);
}

/** The first chart of the command's report as a separate drawing, with the style of the page. */
function reportChart(folder) {
  const [name] = readdirSync(folder, { recursive: true }).filter((path) => path.endsWith("report.html"));
  if (name === undefined) return undefined;
  const page = readFileSync(join(folder, name), "utf8");
  const [style] = /<style>[\s\S]*?<\/style>/.exec(page);
  const [chart] = /<svg [\s\S]*?<\/svg>/.exec(page);
  const ground = '<rect width="100%" height="100%" fill="var(--ground)"/>';
  return `${chart.replace(/<\/desc>/, (end) => `${end}${style}${ground}`)}\n`;
}

/** The terminal output of the command with seconds since its start; pauses are shortened. */
function record(line) {
  const inner = `stty cols ${COLUMNS} rows ${ROWS}; ${line}`;
  const child = spawn("script", ["-qefc", inner, "/dev/null"], {
    cwd: work,
    stdio: ["ignore", "pipe", "inherit"],
    env: { ...process.env, TERM: "xterm-256color", COLUMNS: String(COLUMNS), LINES: String(ROWS) },
  });
  child.stdout.setEncoding("utf8");
  const events = [];
  let [last, at] = [performance.now(), 0];
  child.stdout.on("data", (data) => {
    const now = performance.now();
    at += Math.min((now - last) / 1000, LONGEST_PAUSE_S);
    last = now;
    const rounded = Math.round(at * 100) / 100;
    const before = events.at(-1);
    if (before !== undefined && rounded - before[0] < 0.05) before[1] += data;
    else events.push([rounded, data]);
  });
  return new Promise((resolve, reject) => {
    child.on("error", (error) => reject(new Error(`script: ${error.message}. Install util-linux.`)));
    child.on("close", (code) => resolve({ code, events }));
  });
}

function fail(message) {
  console.error(`demo:record: ${message}`);
  process.exit(1);
}
