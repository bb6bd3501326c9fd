/** The main thread's time in a loop by source file: node profile.mjs FOLDER of --cpu-prof. Out: JSON, ms by source file
 *  of the build. Each sample counts for the nearest Rollbook caller; a sample without one counts under its own name. */
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";

const folder = process.argv[2];
const file = readdirSync(folder).sort()[0]; // threads are numbered; the main thread is first
const { nodes, samples, timeDeltas } = JSON.parse(readFileSync(join(folder, file), "utf8"));
const byId = new Map(nodes.map((node) => [node.id, node]));
const parents = new Map(nodes.flatMap(({ id, children = [] }) => children.map((child) => [child, id])));
const totals = new Map();
for (const [i, id] of samples.entries()) {
  const name = nearest(id);
  totals.set(name, (totals.get(name) ?? 0) + timeDeltas[i] / 1000);
}
const rows = [...totals].sort((a, b) => b[1] - a[1]).slice(0, 45);
console.log(JSON.stringify(rows.map(([name, ms]) => [name, Math.round(ms)])));

function nearest(id) {
  for (let at = id; at !== undefined; at = parents.get(at)) {
    const { url } = byId.get(at).callFrame;
    if (url.includes("/dist/")) return url.split("/dist/")[1];
  }
  const { url, functionName } = byId.get(id).callFrame;
  return url === ""
    ? functionName
    : url
        .replace(/.*node_modules\//, "")
        .split("/")
        .slice(0, 2)
        .join("/");
}
