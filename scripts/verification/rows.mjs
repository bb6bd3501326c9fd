/** The verification matrix. A row is one claim. `make` produces the evidence once. `check` proves the claim from it and
 *  returns the observed value. `spoil` seeds a defect into the evidence that must make `check` fail. */
import { ok } from "node:assert";
import { readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { json, rollbook } from "./cli.mjs";

const LOOP = `run: matrix
book: loop-book
world: { kind: simulator, tasks: tasks }
windows: 2
rollouts: 80
samples: 2
learner: { kind: linucb, alpha: 0.1 }
split: { unit: decision, shares: [0.5, 0, 0.5] }
`;

export const ROWS = [
  {
    name: "tasks-proved",
    claim: "simulated tasks have known solutions, checked twice in a sandbox, and follow from a seed",
    command: "rollbook sim generate --count 40 --seed 7 --engine quickjs --out tasks",
    threshold: "40 tasks; a second folder of the seed has the same digests",
    evidence: "tasks/tasks.meta.json",
    make(folder) {
      for (const out of ["tasks", "tasks-again"])
        rollbook(folder, `sim generate --count 40 --seed 7 --engine quickjs --out ${out}`);
    },
    check(folder) {
      const [one, two] = ["tasks", "tasks-again"].map((name) => read(folder, name, "tasks.meta.json"));
      ok(one.tasks === 40, `${one.tasks} tasks`);
      ok(one.files.solutions === two.files.solutions, "the solutions differ between two folders of one seed");
      return `${one.tasks} tasks, ${one.files.tasks.slice(0, 19)}`;
    },
    spoil: (folder) =>
      rewrite(folder, "tasks-again/tasks.meta.json", /"solutions":"sha256:./, '"solutions":"sha256:x'),
  },
  {
    name: "decisions-recorded",
    claim:
      "rollouts are recorded with every choice and its probability; the observed mean fits the exact value",
    command: "rollbook sim collect --tasks tasks --policy uniform --fast --samples 17 --seed 1",
    threshold: "680 sealed; within 3 standard errors of the exact value",
    evidence: ".rollbook/packs",
    make(folder) {
      rollbook(folder, "keys new");
      const command = "sim collect --tasks tasks --policy uniform --fast --samples 17 --seed 1";
      writeFileSync(join(folder, "collected.json"), JSON.stringify(json(folder, command)));
    },
    check(folder) {
      const { z } = read(folder, "collected.json");
      const rollouts = rollbook(folder, "artifact ls --json").trim().split("\n").length;
      ok(rollouts === 680, `${rollouts} rollouts in the book`);
      ok(Math.abs(z) <= 3, `${z} standard errors from the exact value`);
      return `${rollouts} rollouts, ${z.toFixed(1)} standard errors`;
    },
    spoil: (folder) => rmSync(join(folder, largestPack(folder))),
  },
  {
    name: "book-verifies",
    claim: "everything recorded can be recomputed, and a trusted key signed it",
    command: "rollbook verify --require-trusted",
    threshold: "exit 0",
    evidence: ".rollbook",
    make() {},
    check: (folder) => lastLine(rollbook(folder, "verify --require-trusted")),
    spoil: (folder) => flip(folder, largestPack(folder)),
  },
  {
    name: "dataset-exported",
    claim: "at least 650 labelled decisions leave the book as a dataset",
    command: "rollbook data export --out routing.jsonl",
    threshold: "≥ 650 rows, each with propensity and reward",
    evidence: "routing.jsonl",
    make: (folder) => rollbook(folder, "data export --out routing.jsonl"),
    check(folder) {
      const rows = readFileSync(join(folder, "routing.jsonl"), "utf8")
        .trim()
        .split("\n")
        .map((line) => JSON.parse(line));
      const whole = rows.filter(({ propensity, reward }) => propensity > 0 && reward !== null).length;
      ok(whole >= 650, `${whole} labelled rows with propensities`);
      return `${whole} rows`;
    },
    spoil: (folder) => rewrite(folder, "routing.jsonl", /"propensity":[\d.e-]+/g, '"propensity":null'),
  },
  {
    name: "reward-analyzed",
    claim: "the reward and its terms are summarised from the dataset",
    command: "rollbook reward analyze --data routing.jsonl",
    threshold: "the mean of the report is the mean of the rows",
    evidence: "reward-report.json",
    make: (folder) =>
      writeFileSync(
        join(folder, "reward-report.json"),
        rollbook(folder, "reward analyze --data routing.jsonl --json"),
      ),
    check(folder) {
      const rows = readFileSync(join(folder, "routing.jsonl"), "utf8")
        .trim()
        .split("\n")
        .map((line) => JSON.parse(line).reward);
      const mean = rows.reduce((sum, each) => sum + each, 0) / rows.length;
      const report = readFileSync(join(folder, "reward-report.json"), "utf8");
      const stated = Number(/"mean":([\d.e-]+)/.exec(report)?.[1]);
      ok(Math.abs(stated - mean) < 1e-9, `the report says ${stated}, the rows say ${mean}`);
      return `mean ${mean.toFixed(4)}`;
    },
    spoil: (folder) => rewrite(folder, "reward-report.json", /"mean":[\d.e-]+/, '"mean":0.1'),
  },
  ...["bc", "linucb"].map((learner) => ({
    name: `${learner}-trained`,
    claim: `${learner} trains from the dataset, and its checkpoint has the digest in its revision`,
    command: `rollbook train ${learner} --data routing.jsonl --unit decision --split 40/0/60 --out policies/${learner} --id ${learner}`,
    threshold: "the second training gives the same weights",
    evidence: `policies/${learner}`,
    make(folder) {
      for (const out of [learner, `${learner}-again`])
        rollbook(
          folder,
          `train ${learner} --data routing.jsonl --unit decision --split 40/0/60 --out policies/${out} --id ${learner}`,
        );
    },
    check(folder) {
      const [one, two] = [learner, `${learner}-again`].map((name) =>
        read(folder, "policies", name, "revision.json"),
      );
      ok(one.digest === two.digest, "two trainings on one dataset differ");
      rollbook(folder, `evaluate --data routing.jsonl --checkpoint policies/${learner}`);
      return one.digest.slice(0, 19);
    },
    spoil: (folder) => flip(folder, `policies/${learner}/policy.safetensors`),
  })),
  {
    name: "evaluated-offline",
    claim: "off-policy evaluation of a checkpoint is deterministic",
    command: "rollbook evaluate --data routing.jsonl --checkpoint policies/linucb",
    threshold: "the same report twice",
    evidence: "evaluation.json",
    make: (folder) => writeFileSync(join(folder, "evaluation.json"), rollbook(folder, `${EVALUATE} --json`)),
    check(folder) {
      const again = rollbook(folder, `${EVALUATE} --json`);
      ok(
        again === readFileSync(join(folder, "evaluation.json"), "utf8"),
        "a second evaluation differs from the first",
      );
      return `${again.length} bytes of report`;
    },
    spoil: (folder) => rewrite(folder, "routing.jsonl", /"reward":0\.\d/g, '"reward":0.1'),
  },
  {
    name: "gate-decides",
    claim: "the gate refuses a policy that is worse than the baseline",
    command: "rollbook gate --data routing.jsonl --checkpoint policies/bc --quality-only --epsilon-quality 0",
    threshold: "exit 1, with the reason",
    evidence: "the exit code",
    make() {},
    check(folder) {
      const said = rollbook(folder, GATE, { exit: 1 });
      ok(said.includes("[gate-refused]"), said);
      return "refused";
    },
    // A gate that fails for another reason has not decided: the row must detect that.
    spoil: (folder) => rmSync(join(folder, "policies/bc"), { recursive: true }),
  },
  {
    name: "policy-beats-table",
    claim: "on held-out tasks a learned policy beats the static table fitted on the same log",
    command: "rollbook bench run --suite suite.yaml --run-pack-dir pack",
    threshold: "the whole 95 % interval above 0",
    evidence: "pack/results.json",
    make(folder) {
      writeFileSync(join(folder, "suite.yaml"), SUITE);
      rollbook(folder, "bench run --suite suite.yaml --run-pack-dir pack");
    },
    check(folder) {
      const { arms } = read(folder, "pack", "results.json");
      const { versus } = arms.find(({ name }) => name === "learned");
      ok(versus.low > 0, `learned minus table: [${versus.low}, ${versus.high}]`);
      return `+${versus.mean.toFixed(4)} [${versus.low.toFixed(4)}, ${versus.high.toFixed(4)}]`;
    },
    spoil: (folder) => rewrite(folder, "pack/results.json", /"low":0/g, '"low":-0'),
  },
  {
    name: "pack-verifies",
    claim: "a pack proves its result: every file, every link, every figure again",
    command: "rollbook verify pack",
    threshold: "no broken link",
    evidence: "pack/pack.json",
    make() {},
    check: (folder) => lastLine(rollbook(folder, "verify pack")),
    spoil: (folder) => flip(folder, "pack/log-0.jsonl"),
  },
  {
    name: "pack-repeats",
    claim: "a pack run again gives the same results, bit for bit",
    command: "rollbook pack rerun pack",
    threshold: "no difference",
    evidence: "pack/results.json",
    make() {},
    check: (folder) => lastLine(rollbook(folder, "pack rerun pack")),
    spoil: (folder) => rewrite(folder, "pack/suite.yaml", /seed: \d+/, "seed: 99"),
  },
  {
    name: "loop-decides",
    claim:
      "the loop collects, trains and judges in windows; each ends with the decision of a gate, and its records verify",
    command: "rollbook run start --config loop.yaml",
    threshold: "2 of 2 windows ended, the run has a digest",
    evidence: "loop-book",
    make(folder) {
      writeFileSync(join(folder, "loop.yaml"), LOOP);
      rollbook(folder, "run start --config loop.yaml");
    },
    check(folder) {
      const { ended, digest, windows } = json(folder, "run status --config loop.yaml");
      ok(ended === 2 && digest !== undefined, `${ended} windows ended`);
      rollbook(folder, "verify --book loop-book");
      return `${windows.map(({ outcome }) => outcome).join(", ")}; ${digest.slice(0, 19)}`;
    },
    spoil: (folder) =>
      rmSync(join(folder, "loop-book/packs", readdirSync(join(folder, "loop-book/packs")).at(-1))),
  },
];

const GATE = "gate --data routing.jsonl --checkpoint policies/bc --quality-only --epsilon-quality 0";
const EVALUATE = "evaluate --data routing.jsonl --checkpoint policies/linucb";

const SUITE = `suite: matrix
tasks: { count: 140, seed: 1, families: [js-bugfix, js-implement, json-transform, log-forensics, regex-from-examples, grid-planning, word-problems] }
train: { decisions: 5000 }
repetitions: 3
seed: 1
arms:
  - { name: learned, learner: { kind: linucb, alpha: 0.1 } }
`;

function read(...path) {
  return JSON.parse(readFileSync(join(...path), "utf8"));
}

function rewrite(folder, file, from, to) {
  const path = join(folder, file);
  const text = readFileSync(path, "utf8");
  const changed = text.replace(from, to);
  ok(changed !== text, `${file} holds nothing to change`);
  writeFileSync(path, changed);
}

function largestPack(folder) {
  const packs = readdirSync(join(folder, ".rollbook/packs")).map((name) => join(".rollbook/packs", name));
  const size = (path) => statSync(join(folder, path)).size;
  return packs.reduce((largest, each) => (size(each) > size(largest) ? each : largest));
}

/** Flips one bit in the middle of a file. */
function flip(folder, file) {
  const path = join(folder, file);
  const bytes = readFileSync(path);
  bytes[bytes.length >> 1] ^= 1;
  writeFileSync(path, bytes);
}

function lastLine(text) {
  return text.trim().split("\n").at(-1);
}
