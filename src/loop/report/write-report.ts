/** Writes the report of a run as one HTML file. In: a book, a configuration, a path. Out: the facts. Overwrites nothing. */
import { linkSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { RollbookError } from "../../base/index.ts";
import { isBook, useBook, workingCopy } from "../../book/open/index.ts";
import { renderReportPage } from "../../view/report/render-report.ts";
import type { RunFacts } from "../../view/report/run-facts.ts";
import { requireBegun } from "../check-run.ts";
import type { LoopConfig } from "../config.ts";
import { readRun } from "../read-run.ts";
import { runFacts } from "./run-facts.ts";

export async function reportRun(book: string, config: LoopConfig): Promise<RunFacts> {
  if (!isBook(await workingCopy(book))) requireBegun({ run: config.run, windows: [] }, { book, config });
  const folder = mkdtempSync(join(tmpdir(), "rollbook-report-"));
  try {
    return await useBook(book, { mode: "read" }, async (open) => {
      const state = await readRun(open, config.run);
      requireBegun(state, { book, config });
      return runFacts(open, { config, state, folder });
    });
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** Writes the file completely or not at all. */
export function writeReport(path: string, facts: RunFacts): { readonly bytes: number } {
  const page = renderReportPage(facts);
  const draft = join(dirname(path), `.${process.pid}-report.part`);
  writeFileSync(draft, page);
  try {
    linkSync(draft, path);
  } catch (cause) {
    if ((cause as NodeJS.ErrnoException).code !== "EEXIST") throw cause;
    throw new RollbookError(
      "file-exists",
      { path },
      `${path} exists and is not overwritten. Remove it, or name another file.`,
      { cause },
    );
  } finally {
    rmSync(draft, { force: true });
  }
  return { bytes: Buffer.byteLength(page) };
}
