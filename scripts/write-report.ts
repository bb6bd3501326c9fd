/** Writes docs/report/ from the results of two run packs: tables and SVG figures into report.md, and report.html from
 *  it. `npm run report`: from docs/report/results.json, and ablation.json if it exists. `-- --pack DIR` and
 *  `-- --ablation DIR`: verify the pack of a suite or of an ablation, and use its results.
 *  `-- --check`: writes nothing, fails if a file would change. `-- --pdf FILE`: prints report.html with chromium. */
import { spawnSync } from "node:child_process";
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { parseArgs } from "node:util";
import { parseAblation, parseResult } from "../src/judge/bench/index.ts";
import { brokenLinks, verifyPack, withPackFolder } from "../src/loop/pack/index.ts";
import { svgFile } from "../src/view/charts/index.ts";
import { ablationText } from "./report/ablation-report.ts";
import { benchBlocks, benchFigures } from "./report/bench-report.ts";
import { fillBlocks, pageOfMarkdown } from "./report/markdown.ts";

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const folder = join(root, "docs/report");
const { values } = parseArgs({
  options: {
    pack: { type: "string" },
    ablation: { type: "string" },
    check: { type: "boolean" },
    pdf: { type: "string" },
  },
});

const text = values.pack === undefined ? read("results.json") : await verifiedResults(values.pack);
const result = parseResult(text, values.pack ?? "docs/report/results.json");
const ablated =
  values.ablation === undefined ? readIfThere("ablation.json") : await verifiedResults(values.ablation);
const figures = benchFigures(result);
const markdown = fillBlocks(read("report.md"), {
  ...benchBlocks(result),
  ...(ablated === undefined ? {} : { ablation: ablationText(parseAblation(ablated, "the ablation")) }),
});
const html = pageOfMarkdown(markdown, new Map(figures.map(({ file, chart }) => [file, chart])));

const changed = [
  ["results.json", text],
  ...(ablated === undefined ? [] : [["ablation.json", ablated] as const]),
  ["report.md", markdown],
  ["report.html", html],
  ...figures.map(({ file, chart }) => [file, svgFile(chart)] as const),
].filter(([name, content]) => !existsSync(join(folder, name!)) || read(name!) !== content);
if (values.check) {
  if (changed.length > 0)
    fail(`${changed.map(([name]) => name).join(", ")}: not as generated. Run: npm run report`);
} else {
  mkdirSync(join(folder, "figures"), { recursive: true });
  for (const [name, content] of changed) writeFileSync(join(folder, name!), content!);
}
console.log(
  `docs/report: ${changed.length === 0 ? "as generated" : `wrote ${changed.map(([name]) => name).join(", ")}`}`,
);
if (values.pdf !== undefined) printPdf(values.pdf);

function read(name: string): string {
  return readFileSync(join(folder, name), "utf8");
}

function readIfThere(name: string): string | undefined {
  return existsSync(join(folder, name)) ? read(name) : undefined;
}

async function verifiedResults(path: string): Promise<string> {
  return withPackFolder(path, async (pack) => {
    const [broken] = brokenLinks((await verifyPack(pack)).chain);
    if (broken !== undefined) fail(`${path}: ${broken.path} does not hold: ${broken.broken}`);
    return readFileSync(join(pack, "results.json"), "utf8");
  });
}

function printPdf(file: string): void {
  const page = pathToFileURL(join(folder, "report.html")).href;
  mkdirSync(dirname(resolve(file)), { recursive: true });
  const flags = ["--headless", "--no-sandbox", "--disable-gpu", "--no-pdf-header-footer"];
  const { status, error } = spawnSync("chromium", [...flags, `--print-to-pdf=${resolve(file)}`, page], {
    stdio: ["ignore", "ignore", "ignore"],
  });
  if (error !== undefined || status !== 0 || !existsSync(file))
    fail(
      `chromium could not print ${file}: ${error?.message ?? `exit ${status}`}. Install Debian's chromium.`,
    );
  console.log(`${file}: printed`);
}

function fail(message: string): never {
  console.error(`report: ${message}`);
  process.exit(1);
}
