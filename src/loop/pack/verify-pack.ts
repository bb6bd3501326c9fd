/** Verifies a run pack: every file by its digest, every link from the result to its inputs, and the result itself,
 *  which is computed again.
 *  In: a folder. Out: the chain as a tree; a broken link has a reason. Trains nothing: `rerun` does. */
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { canonicalize, type Digest, plural, RollbookError } from "../../base/index.ts";
import { datasetOf } from "../../book/decisions/index.ts";
import { verifyBook } from "../../book/maintain/index.ts";
import { useBook } from "../../book/open/index.ts";
import { checkAttestation, type RunPack } from "../../contract/index.ts";
import { parseAblation, parseResult } from "../../judge/bench/index.ts";
import { faultsOf, readPack, readSignatures } from "../../keep/pack/index.ts";
import { readCheckpoint } from "../../policy/index.ts";
import {
  cellsOf,
  checkpointFolder,
  logFile,
  measureAblation,
  measureSuite,
  parseSuite,
  RESULT_FILE,
  SUITE_FILE,
  type Suite,
  writeLog,
} from "../bench/index.ts";
import { parseLoopConfig } from "../config.ts";
import { type LoopWindow, runDigest } from "../fold.ts";
import { readRun } from "../read-run.ts";
import { simWorld } from "../world/index.ts";
import { loopResult } from "./loop-result.ts";
import { link, type PackLink } from "./pack-link.ts";
import { BOOK_FOLDER, copyBook, LOOP_FILE, LOOP_RESULT } from "./seal-pack.ts";

interface VerifiedPack {
  readonly digest: Digest;
  readonly record: RunPack;
  /** Public keys with a valid signature over the pack. */
  readonly signers: readonly string[];
  readonly chain: PackLink;
}

export async function verifyPack(folder: string): Promise<VerifiedPack> {
  const { digest, record } = readPack(folder);
  const signers: string[] = [];
  const chain: PackLink = {
    ...{ what: `pack ${record.run.name}`, digest },
    below: [
      await link("signatures", async () => {
        signers.push(...checkSignatures(folder, digest));
        if (record.signer !== undefined && !signers.includes(record.signer))
          throw broken(`the signature of ${record.signer} is missing`);
        return {};
      }),
      await link("files", async () => {
        const fault = fileFault(folder, record);
        if (fault !== undefined) throw broken(fault);
        return {};
      }),
      await LINKS[record.run.kind](folder, record),
    ],
  };
  return { digest, record, signers, chain };
}

function checkSignatures(folder: string, digest: Digest): string[] {
  return readSignatures(folder).map(({ path, record }) => {
    checkAttestation(record);
    if (!record.subjects.includes(digest)) throw broken(`${path} signs another pack`);
    return record.signer;
  });
}

/** The differences between the files of a pack and its record; undefined if there are none. */
export function fileFault(folder: string, record: RunPack): string | undefined {
  const faults = faultsOf(folder, record);
  if (faults.length === 0) return undefined;
  const said = faults.slice(0, 5).map(({ path, fault }) => `${path} is ${WORDS[fault]}`);
  const more = faults.length > 5 ? `, and ${plural(faults.length - 5, "more fault")}` : "";
  return `${said.join(", ")}${more}`;
}

const WORDS = {
  missing: "missing",
  extra: "not listed in pack.json",
  changed: "changed",
  "not-a-file": "not a plain file",
} as const;

const LINKS: Readonly<Record<RunPack["run"]["kind"], typeof benchLinks>> = {
  bench: benchLinks,
  ablation: ablationLinks,
  loop: loopLinks,
};

/** Chain: results → suite, tasks, logs, checkpoints. The figures are computed again. */
function benchLinks(folder: string, { run }: RunPack): Promise<PackLink> {
  return link("results", async () => {
    const text = readFileSync(join(folder, RESULT_FILE), "utf8");
    const result = parseResult(text, RESULT_FILE);
    const suite = parseSuite(readFileSync(join(folder, SUITE_FILE), "utf8"), SUITE_FILE, folder);
    same("the suite of the pack", run.digest, suite.digest);
    same("the suite of the results", result.suite.digest, suite.digest);
    const below = [];
    for (const [index, stated] of result.logs.entries())
      below.push(await repetitionLink(folder, suite, { index, stated, arms: result.arms }));
    const again = await measureSuite(suite, folder);
    same("the tasks of the results", result.world, again.world);
    if (`${canonicalize(again)}\n` !== text)
      throw broken("its figures are not those that the tasks, logs and checkpoints of the pack give");
    return { digest: suite.digest, below };
  });
}

function repetitionLink(
  folder: string,
  suite: Suite,
  {
    index,
    stated,
    arms,
  }: {
    index: number;
    stated: Digest;
    arms: readonly { readonly name: string; readonly checkpoints: readonly Digest[] }[];
  },
): Promise<PackLink> {
  return link(`log ${index}`, async () => {
    const { digest } = await datasetOf({ data: join(folder, logFile(index)) }, {});
    same("the log of the results", stated, digest);
    const below = await Promise.all(
      suite.arms.map(({ name }) =>
        link(`checkpoint ${name}`, async () => {
          const { revision } = readCheckpoint(join(folder, checkpointFolder(name, index)));
          const claimed = arms.find((arm) => arm.name === name)?.checkpoints[index];
          same("the checkpoint of the results", claimed ?? "missing", revision.digest);
          const trainedOn = revision.record.training?.datasets?.[0]?.digest ?? "nothing";
          same("the log it was trained on", trainedOn, digest);
          return { digest: revision.digest };
        }),
      ),
    );
    return { digest, below };
  });
}

/** Chain: results → suite, tasks, cells → logs. The logs are drawn again, and the figures are computed again from the
 *  answers in the cells. Only `rerun` shows that training gives these answers. */
function ablationLinks(folder: string, { run }: RunPack): Promise<PackLink> {
  return link("results", async () => {
    const text = readFileSync(join(folder, RESULT_FILE), "utf8");
    const { varied, suite: stated } = parseAblation(text, RESULT_FILE);
    const suite = parseSuite(readFileSync(join(folder, SUITE_FILE), "utf8"), SUITE_FILE, folder);
    same("the suite of the pack", run.digest, suite.digest);
    same("the suite of the results", stated.digest, suite.digest);
    const below = [];
    for (const { name, asked, logOf } of cellsOf(suite, varied, folder))
      below.push(
        await link(`cell ${name}`, async () => {
          for (const [index, { log }] of asked.entries())
            same(`log ${index}`, log, await digestOfLog(logOf(index)));
          return {};
        }),
      );
    if (`${canonicalize(measureAblation(suite, varied, folder))}\n` !== text)
      throw broken("its figures are not those that the tasks and the answers in the pack give");
    return { digest: suite.digest, below };
  });
}

async function digestOfLog(rows: Parameters<typeof writeLog>[1]): Promise<Digest> {
  const work = mkdtempSync(join(tmpdir(), "rollbook-log-"));
  try {
    const data = join(work, "log.jsonl");
    writeLog(data, rows);
    return (await datasetOf({ data }, {})).digest;
  } finally {
    rmSync(work, { recursive: true, force: true });
  }
}

/** Chain: results → run → windows, and the book with every verdict, revision, batch, rollout, call and task. */
function loopLinks(folder: string, { run }: RunPack): Promise<PackLink> {
  return link("results", async () => {
    const config = parseLoopConfig(readFileSync(join(folder, LOOP_FILE), "utf8"), LOOP_FILE, folder);
    const stated = config.isDigest(run.digest) ? run.digest : config.digest;
    same("the configuration of the pack", run.digest, stated);
    if (config.world.kind !== "simulator") throw broken("the loop is not on the simulator");
    const world = simWorld(config.world);
    // The book is copied, because opening it writes its catalog, and a pack must not be changed.
    const copy = mkdtempSync(join(tmpdir(), "rollbook-pack-"));
    try {
      copyBook(join(folder, BOOK_FOLDER), copy);
      return await useBook(copy, { mode: "read" }, async (book) => {
        const { report } = await verifyBook(book);
        if (report.problems.length > 0) throw broken(`the book has problems: ${report.problems[0]!.message}`);
        const state = await readRun(book, config.run);
        const digest = runDigest(state, config.windows);
        if (digest === undefined) {
          const ended = state.windows.filter(({ final }) => final !== undefined).length;
          throw broken(
            `the book has ${plural(ended, "ended window")} of the run, and ${LOOP_FILE} sets windows: ${config.windows}`,
          );
        }
        if (`${loopResult(state, config)}\n` !== readFileSync(join(folder, LOOP_RESULT), "utf8"))
          throw broken("its figures are not those of the run in the book");
        const below = state.windows.map((window): PackLink => {
          const { step } = window.need("planned");
          const wrong =
            step.config !== run.digest
              ? "it was planned with another configuration"
              : step.world !== world.digest
                ? "it was planned with other tasks or models"
                : undefined;
          const below = chainOf(window);
          return {
            what: `window ${window.number}`,
            ...(wrong === undefined ? {} : { broken: wrong }),
            below,
          };
        });
        return { digest, below };
      });
    } finally {
      rmSync(copy, { recursive: true, force: true });
    }
  });
}

/** Chain: verdict → revision → batch → rollouts. All of them lie in the book, which was verified completely. */
function chainOf(window: LoopWindow): PackLink[] {
  const rollouts = window.at("sealed")?.step;
  const links: [string, string | undefined][] = [
    ["gate verdict", window.at("judged")?.envelope.verdict],
    ["policy revision", window.at("trained")?.envelope.revision],
    ["batch", window.at("scored")?.envelope.batch],
    [plural(rollouts?.rollouts ?? 0, "rollout"), rollouts?.members],
  ];
  return links.reduceRight<PackLink[]>(
    (below, [what, digest]) => (digest === undefined ? below : [{ what, digest, below }]),
    [],
  );
}

function same(what: string, stated: string, found: string): void {
  if (stated !== found) throw broken(`${what} is ${stated}, and ${found} is in the pack`);
}

function broken(message: string): RollbookError {
  return new RollbookError("broken-pack", {}, `${message}.`);
}
