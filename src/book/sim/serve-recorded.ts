/** Serves recorded answers of real models as an upstream on loopback.
 *  In: the description of the recorded answers. Out: a running server and, on request, the questions as task rows in
 *  a file. */
import { existsSync } from "node:fs";
import { RollbookError } from "../../base/index.ts";
import { recordedModels, recordedRows, serveOnLoopback } from "../../collect/sim/index.ts";
import { writeAtomically } from "../../store/index.ts";
import { readRecorded } from "./read-recorded.ts";

interface RecordedUpstream {
  readonly url: string;
  readonly models: readonly string[];
  readonly questions: number;
  close(): Promise<void>;
}

export async function serveRecorded(request: {
  readonly recorded: string;
  readonly port: number;
  /** Path for the questions; an existing file is never overwritten. */
  readonly rows?: string | undefined;
}): Promise<RecordedUpstream> {
  const { recorded, port, rows } = request;
  const set = await readRecorded(recorded);
  if (rows !== undefined) {
    if (existsSync(rows))
      throw new RollbookError("exists", { path: rows }, `${rows} already exists. Name another file.`);
    const lines = recordedRows(set).map((row) => `${JSON.stringify(row)}\n`);
    writeAtomically(rows, Buffer.from(lines.join("")), `${rows}.part`);
  }
  const { url, close } = await serveOnLoopback(recordedModels(set), port);
  return { url, models: set.models.map(({ name }) => name), questions: set.questions.length, close };
}
