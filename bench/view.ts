/** Waiting times of a reader of a large book: the list on a terminal, the first rows in a browser, frames while
 *  scrolling. Needs Debian's chromium.
 *  The book is made first; its catalog is built once, and that time is measured separately. */
import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import type { Page } from "playwright-core";
import { systemClock } from "../src/base/index.ts";
import { openBook } from "../src/book/open/index.ts";
import { openBook as openStore } from "../src/store/index.ts";
import { serveViewer } from "../src/view/viewer/serve-viewer.ts";
import { openBrowser, watchPage } from "../test/support/browser.ts";
import { MAIN, requireBuild } from "./support/build.ts";
import { fillChatBook } from "./support/chat-book.ts";
import { median, printTable } from "./support/interleave.ts";
import type { Bench } from "./support/programs.ts";

const SCROLL_MS = 4000;

export const bench: Bench = {
  summary: "reading a book of many rollouts: list, transcript, first rows and frames in a browser",
  async run(args) {
    const { values } = parseArgs({
      args,
      options: {
        rollouts: { type: "string", default: "100000" },
        book: { type: "string" },
        json: { type: "boolean", default: false },
      },
    });
    requireBuild();
    const scratch = mkdtempSync(join(tmpdir(), "rollbook-bench-view-"));
    const root = values.book ?? join(scratch, "book");
    try {
      if (values.book === undefined) await makeBook(root, Number(values.rollouts));
      const first = timed(() => cli("artifact", "ls", "--book", root, "--limit", "1"));
      printTable(
        [
          { figure: "first command (builds the catalog)", ms: first },
          ...terminal(root),
          ...(await browser(root)),
        ],
        args,
      );
    } finally {
      rmSync(scratch, { recursive: true, force: true });
    }
  },
};

async function makeBook(root: string, rollouts: number): Promise<void> {
  const store = await openStore(root, { clock: systemClock });
  await fillChatBook(store, rollouts);
  await store.close();
}

function terminal(root: string): { figure: string; ms: number }[] {
  const often = (...words: string[]) =>
    median([1, 2, 3, 4, 5].map(() => timed(() => cli(...words, "--book", root))));
  return [
    { figure: "artifact ls --limit 50", ms: often("artifact", "ls", "--limit", "50") },
    { figure: "artifact ls", ms: often("artifact", "ls") },
    { figure: "artifact show", ms: often("artifact", "show", "r-000001") },
  ];
}

async function browser(root: string): Promise<{ figure: string; ms: number }[]> {
  const book = await openBook(root, { mode: "read" });
  const opening = performance.now();
  const viewer = await serveViewer(book, { token: "bench" });
  const serving = performance.now() - opening;
  const window = await openBrowser();
  try {
    const { page } = await watchPage(window, viewer.url);
    await page.locator("[role=listbox] [role=option]").nth(10).waitFor();
    // Measured from the request of the page: opening a browser tab before it takes extra time.
    const rows = (await page.evaluate("performance.now()")) as number;
    const frames = (await scrolled(page)).sort((a, b) => a - b);
    const at = (share: number) => frames[Math.floor(frames.length * share)]!;
    return [
      { figure: "view: start of the server", ms: serving },
      { figure: "view: first rows after opening the page", ms: rows },
      { figure: "view: frame, median while scrolling", ms: at(0.5) },
      { figure: "view: frame, p95 while scrolling", ms: at(0.95) },
    ];
  } finally {
    await window.close();
    await viewer.close();
    await book.close();
  }
}

/** Times between frames while the whole list scrolls past. A string, because tsx would insert helper names into a
 *  function, and the page does not define them. */
function scrolled(page: Page): Promise<number[]> {
  return page.evaluate(`new Promise((done) => {
    const list = document.querySelector("[role=listbox]");
    const step = (list.scrollHeight - list.clientHeight) / (${SCROLL_MS} / 16);
    const frames = [];
    let last = performance.now();
    const end = last + ${SCROLL_MS};
    requestAnimationFrame(function frame(now) {
      frames.push(now - last);
      last = now;
      list.scrollTop += step;
      if (now < end) requestAnimationFrame(frame);
      else done(frames.slice(1));
    });
  })`);
}

function cli(...words: string[]): void {
  execFileSync(process.execPath, [MAIN, ...words], { stdio: ["ignore", "ignore", "inherit"] });
}

function timed(work: () => unknown): number {
  const start = performance.now();
  work();
  return performance.now() - start;
}
