/** Time of the default learner for a large log, from the file to the checkpoint,
 *  and of scikit-learn on the same rows. */
import { spawnSync } from "node:child_process";
import { closeSync, mkdtempSync, openSync, readFileSync, rmSync, writeFileSync, writeSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { RollbookError } from "../../src/base/errors.ts";
import { type Rng, rngFrom } from "../../src/base/rng.ts";
import { toRoutingRow } from "../../src/convert/routing-jsonl.ts";
import type { PythonPeer } from "../support/python-peer.ts";
import { loadPeer, rowOf } from "./compare.ts";
import type { RouterSet } from "./router-set.ts";

const MAIN = fileURLToPath(new URL("../../dist/cli/main.js", import.meta.url));
const USAGE = new URL("../support/usage.mjs", import.meta.url).href;
const ARMS = 8;
const WORDS = 30_000;
/** Words with a higher number are rare: about seven per prompt. */
const RARE = 5_000;
const BAR = { seconds: 60, mebibytes: 1024 };

type LoggedSet = Extract<RouterSet, { kind: "logged" }>;

/** Prompts of 20 to 60 words with a long tail, four fields, and candidates that fit some subjects and words. */
function largeLog(rows: number): LoggedSet {
  const rng = rngFrom(11);
  const arms = Array.from({ length: ARMS }, (_, a) => `model-${a}`);
  const word = (own: Rng) => Math.floor(WORDS ** own.float());
  const items = Array.from({ length: rows }, () => {
    const words = Array.from({ length: 20 + rng.below(41) }, () => word(rng));
    const subject = rng.below(30);
    const chosen = rng.below(ARMS);
    const suited =
      (subject + chosen) % 4 === 0 || words.some((each) => each > RARE && each % ARMS === chosen);
    const fields = { subject: `s${subject}`, turn: rng.below(9), tokens: words.length, urgent: rng.below(2) };
    return {
      text: words.map((each) => `w${each}`).join(" "),
      fields,
      logged: { chosen, reward: Number(rng.float() < (suited ? 0.8 : 0.4)), propensity: 1 / ARMS },
    };
  });
  return {
    kind: "logged",
    name: `${rows} rows × ${ARMS} candidates`,
    texts: items.map(({ text }) => text),
    fields: items.map(({ fields }) => fields),
    arms,
    logged: items.map(({ logged }) => logged),
  };
}

export async function trainingSpeed(peer: PythonPeer, rows: number): Promise<Record<string, string>[]> {
  const set = largeLog(rows);
  const folder = mkdtempSync(join(tmpdir(), "rollbook-speed-"));
  try {
    const data = join(folder, "log.jsonl");
    writeLog(data, set);
    const ours = trainOnce(folder, data);
    await loadPeer(peer, set);
    const all = set.logged.map((_, i) => i);
    const arms = set.arms.map((_, a) => {
      const own = all.filter((i) => set.logged[i]!.chosen === a);
      return [own, own.map((i) => set.logged[i]!.reward)];
    });
    const { learners, peakMiB } = await peer.call<{
      learners: Record<string, { seconds: number }>;
      peakMiB: number;
    }>("split", all, all.slice(0, 100), arms, ["ridge", "logistic"]);
    const met = ours.seconds < BAR.seconds && ours.peakMiB < BAR.mebibytes;
    return [
      {
        log: set.name,
        learner: "train auto, file to checkpoint",
        seconds: ours.seconds.toFixed(1),
        "processor s": ours.cpuSeconds.toFixed(1),
        "peak MiB": ours.peakMiB.toFixed(0),
        bar: `< ${BAR.seconds} s, < ${BAR.mebibytes} MiB`,
        met: met ? "yes" : "NO",
      },
      ...Object.entries(learners).map(([learner, { seconds }]) => ({
        ...{ log: set.name, learner: `sklearn ${learner}, in memory`, seconds: seconds.toFixed(1) },
        ...{ "processor s": "", "peak MiB": peakMiB.toFixed(0), bar: "", met: "" },
      })),
    ];
  } finally {
    rmSync(folder, { recursive: true });
  }
}

function writeLog(path: string, set: LoggedSet): void {
  const file = openSync(path, "w");
  set.logged.forEach(({ chosen, reward, propensity }, i) => {
    const rewards = set.arms.map((_, a) => (a === chosen ? reward : undefined));
    writeSync(file, `${JSON.stringify(toRoutingRow(rowOf(set, i, { chosen, propensity, rewards })))}\n`);
  });
  closeSync(file);
}

/** Trains on all rows, on one core. */
function trainOnce(folder: string, data: string): { seconds: number; peakMiB: number; cpuSeconds: number } {
  const usage = join(folder, "usage.json");
  writeFileSync(usage, "{}");
  const start = performance.now();
  const words = [
    "train",
    "auto",
    "--data",
    data,
    "--out",
    join(folder, "auto"),
    "--id",
    "auto",
    "--split",
    "all",
  ];
  const args = ["--max-old-space-size=800", "--single-threaded-gc", "--import", USAGE, MAIN, ...words];
  const { status, stderr } = spawnSync(process.execPath, args, {
    encoding: "utf8",
    env: { ...process.env, ROLLBOOK_USAGE: usage },
  });
  if (status !== 0) throw new RollbookError("bench-failed", { status }, `train auto failed:\n${stderr}`);
  const { peakMiB, cpuSeconds } = JSON.parse(readFileSync(usage, "utf8")) as {
    peakMiB: number;
    cpuSeconds: number;
  };
  return { seconds: (performance.now() - start) / 1000, peakMiB, cpuSeconds };
}
