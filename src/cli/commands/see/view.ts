/** Implements `rollbook view`: shows a book in a browser, or writes it as one HTML file. */
import { randomBytes } from "node:crypto";
import { writeFileSync } from "node:fs";
import type { Command } from "commander";
import { type Digest, RollbookError } from "../../../base/index.ts";
import { type OpenBook, resolveArtifact } from "../../../book/open/index.ts";
import { requireExperiment } from "../../../book/rollouts/index.ts";
import { jsonLine, plural } from "../../../view/format.ts";
import { addCommand } from "../../command.ts";
import { interrupted } from "../../interrupted.ts";
import type { Io } from "../../io.ts";
import { portNumber } from "../../options/numbers.ts";
import { addRolloutFilters, rolloutQuery } from "../../options/rollout-filters.ts";
import { type BookFlags, bookRoot, withBook } from "../../with-book.ts";

/** Default maximum number of rollouts in one file; --limit changes it. */
const FILE_ROLLOUTS = 1000;

type ViewFlags = BookFlags & Parameters<typeof rolloutQuery>[0] & { port: number; out?: string };

interface Named {
  readonly named: readonly string[];
}

export function addView(program: Command, io: Io): void {
  const command = addCommand(program, "view", {
    summary: "show the book in a browser, or write it as one HTML file",
    description: `Show the book in a browser: rollouts with filters, transcripts, batches with lineage and ledger,
verdicts of the gate. The server listens on loopback until interrupted, is read-only, and needs the token in the
printed address. --out writes one self-contained HTML file instead; the filters select its rollouts, by default the
latest ${FILE_ROLLOUTS}. Rollouts that are named are the only ones shown, in a browser and in a file.`,
    examples: [
      "rollbook view --port 0",
      "rollbook view r-0001 r-0002 --out two.html",
      "rollbook view --out book.html --limit 100",
    ],
  })
    .argument("[rollouts...]", "rollout ids, digests, or the first characters of one (default: all)")
    .option("--port <n>", "listen on this port of 127.0.0.1; 0 takes a free one", portNumber, 8793)
    .option("--out <file>", "write one HTML file instead; never overwritten");
  addRolloutFilters(command, String(FILE_ROLLOUTS)).action((named: readonly string[], flags: ViewFlags) =>
    flags.out === undefined
      ? serve(io, { ...flags, named })
      : writePage(io, { ...flags, named, out: flags.out }),
  );
}

/** Undefined means the whole book. */
async function contentsOf(book: OpenBook, named: readonly string[]): Promise<Digest[] | undefined> {
  const index = await book.index();
  return named.length === 0 ? undefined : named.map((name) => resolveArtifact(index, name).content.digest);
}

async function serve(io: Io, flags: ViewFlags & Named): Promise<void> {
  const filter = Object.entries(rolloutQuery(flags, io.clock)).find(([, value]) => value !== undefined);
  if (filter !== undefined)
    throw new RollbookError(
      "wrong-usage",
      { filter: filter[0] },
      "filters choose the rollouts of a file (--out). The page in a browser has filters of its own.",
    );
  const { serveViewer } = await import("../../../view/viewer/serve-viewer.ts");
  await withBook(io, flags, async (book) => {
    const token = randomBytes(24).toString("base64url");
    const contents = await contentsOf(book, flags.named);
    const { url, close } = await serveViewer(book, { token, port: flags.port, contents });
    io.out(flags.json ? jsonLine({ url, book: bookRoot(io, flags) }) : `${url}\n`);
    await interrupted();
    await close();
  });
}

async function writePage(io: Io, flags: ViewFlags & Named & { out: string }): Promise<void> {
  const { readPageData } = await import("../../../view/viewer/read-page-data.ts");
  const { pageWith } = await import("../../../view/viewer/page.ts");
  const { limit = FILE_ROLLOUTS, ...query } = rolloutQuery(flags, io.clock);
  const data = await withBook(io, flags, async (book) => {
    if (query.experiment !== undefined) requireExperiment(await book.index(), query.experiment);
    return readPageData(book, { ...query, limit, contents: await contentsOf(book, flags.named) });
  });
  // An empty page is refused only if a filter is the reason: an empty book has an empty page.
  if (data.rollouts.length === 0 && Object.values(query).some((each) => each !== undefined))
    throw new RollbookError(
      "no-rollouts",
      {},
      "no rollout matches these filters. `rollbook artifact ls` lists what there is. Change the filters, or leave them out.",
    );
  const page = pageWith(data);
  try {
    writeFileSync(flags.out, page, { flag: "wx" });
  } catch (cause) {
    if ((cause as NodeJS.ErrnoException).code !== "EEXIST") throw cause;
    throw new RollbookError(
      "file-exists",
      { path: flags.out },
      `${flags.out} exists and is not overwritten. Remove it, or name another file with --out.`,
      { cause },
    );
  }
  const facts = { out: flags.out, rollouts: data.rollouts.length, bytes: Buffer.byteLength(page) };
  io.out(
    flags.json
      ? jsonLine(facts)
      : `${plural(facts.rollouts, "rollout")}, ${plural(facts.bytes, "byte")}: ${flags.out}\n`,
  );
}
