/** A recording as one SVG: all frames below one another, and a window that steps from one to the next.
 *  In: frames of lines with their times. Out: SVG. Each distinct line is drawn once and used by the frames that show
 *  it. With reduced motion, only the last frame is shown. */

const [CELL_WIDTH, LINE] = [7.8, 17];
const [PAD, BAR] = [14, 30];
/** Seconds that the last frame stays. */
const HOLD_S = 8;
const MOST_FRAMES = 240;

const STYLE = `text { font: 13px ui-monospace, "SF Mono", "DejaVu Sans Mono", monospace; fill: #d6dae0; white-space: pre; }
.bold { font-weight: 700; } .dim { fill: #98a2ae; } .red { fill: #f28b82; } .green { fill: #7ed491; }
.yellow { fill: #e6c063; } .blue, .cyan { fill: #7cc0f8; } .title { fill: #98a2ae; }`;

export function renderRecording(all, { columns, rows, title }) {
  const frames = thinned(distinct(all));
  const [width, height] = [Math.ceil(columns * CELL_WIDTH) + 2 * PAD, rows * LINE + BAR + PAD];
  const total = frames.at(-1).at + HOLD_S;
  const screen = rows * LINE;
  const ids = new Map();
  const drawn = frames.map(({ lines }, f) => {
    const used = lines.flatMap((runs, y) =>
      runs.length === 0 ? [] : [`<use href="#${idOf(ids, runs)}" y="${f * screen + y * LINE}"/>`],
    );
    return used.join("");
  });
  const steps = frames.map(
    ({ at }, f) => `${((100 * at) / total).toFixed(3)}%{transform:translateY(${-f * screen}px)}`,
  );
  const still = `transform:translateY(${-(frames.length - 1) * screen}px)`;
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" width="${width}" height="${height}" role="img">`,
    `<title>${escaped(title)}</title><desc>${escaped(textOf(frames.at(-1).lines))}</desc>`,
    `<style>${STYLE}\n.reel{${still};animation:play ${total.toFixed(2)}s steps(1,end) infinite}`,
    `@keyframes play{${steps.join("")}100%{${still}}}`,
    "@media (prefers-reduced-motion:reduce){.reel{animation:none}}</style>",
    `<rect width="${width}" height="${height}" rx="8" fill="#16181c"/>`,
    `<text class="title" x="${width / 2}" y="20" text-anchor="middle">${escaped(title)}</text>`,
    `<defs>${[...ids.values()].map(({ id, svg }) => `<g id="${id}">${svg}</g>`).join("")}</defs>`,
    `<svg x="${PAD}" y="${BAR}" width="${width - 2 * PAD}" height="${screen}"><g class="reel">${drawn.join("\n")}</g></svg>`,
    "</svg>\n",
  ].join("\n");
}

/** Leaves out a frame that looks like the previous one. */
function distinct(frames) {
  return frames.filter(
    ({ lines }, i) => i === 0 || JSON.stringify(lines) !== JSON.stringify(frames[i - 1].lines),
  );
}

/** Removes frames if there are too many, those with the shortest gap first. The first and the last frame stay. */
function thinned(frames) {
  const kept = [...frames];
  while (kept.length > MOST_FRAMES) {
    let soonest = 1;
    for (let i = 2; i < kept.length - 1; i++)
      if (kept[i + 1].at - kept[i].at < kept[soonest + 1].at - kept[soonest].at) soonest = i;
    kept.splice(soonest, 1);
  }
  return kept;
}

function idOf(ids, runs) {
  const key = JSON.stringify(runs);
  const known = ids.get(key);
  if (known !== undefined) return known.id;
  const id = `l${ids.size}`;
  let column = 0;
  const svg = runs.map(({ text, style }) => {
    const x = Math.round(column * CELL_WIDTH * 10) / 10;
    column += [...text].length;
    if (text.trim() === "") return "";
    const length = Math.round([...text].length * CELL_WIDTH * 10) / 10;
    const named = style === "" ? "" : ` class="${style}"`;
    return `<text x="${x}" y="13" textLength="${length}"${named}>${escaped(text)}</text>`;
  });
  ids.set(key, { id, svg: svg.join("") });
  return id;
}

function textOf(lines) {
  return lines
    .map((runs) => runs.map(({ text }) => text).join(""))
    .filter((line) => line.trim() !== "")
    .join("\n");
}

function escaped(text) {
  return text
    .replaceAll("&", "&amp;")
    .replaceAll("<", "&lt;")
    .replaceAll(">", "&gt;")
    .replaceAll('"', "&quot;");
}
