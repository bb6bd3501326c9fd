/** Inputs of the rows: three checkpoint-backed revisions, rollouts of two of them, a shelf for records, and the command
 *  line on its own book. Everything uses the built package. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { digestJson, isRollbookError, manualClock } from "rollbook/base";
import { assembleBatch } from "rollbook/batch";
import {
  openRecord,
  PolicyRevision,
  parseRolloutDraft,
  recordType,
  seal,
  sealManifest,
  sealRollout,
} from "rollbook/contract";
import { run } from "../../dist/cli/run.js";

export const FAMILY = "train.decoder";

export function weights(id) {
  return digestJson("claims.weights", id);
}

export function checkpointOf(id) {
  return {
    family: FAMILY,
    streamId: `${FAMILY}-main`,
    manifestDigest: digestJson("claims.manifest", id),
    objectDigest: weights(id),
    startedAtMs: 900,
    step: 100n,
  };
}

/** A revision of the family; `over` replaces fields. */
export function revision(number, over = {}) {
  const id = `policy-r${number}`;
  const parent =
    number > 1 ? { parent: { id: `policy-r${number - 1}`, digest: weights(`policy-r${number - 1}`) } } : {};
  return seal(PolicyRevision, {
    family: FAMILY,
    id,
    number: BigInt(number),
    digest: weights(id),
    checkpoint: checkpointOf(id),
    producedAtMs: 1000 + number,
    ...parent,
    ...over,
  });
}

/** The JSON of a revision, as in a file. */
export function revisionJson(number) {
  return JSON.parse(Buffer.from(revision(number).bytes).toString());
}

const SAMPLES = {
  "rollout-a": {
    task: "task-paris",
    revision: 1,
    ids: [101, 202],
    logprobs: [-0.25, -0.5],
    rewards: [0.5, 0.125],
    advantages: [0.25, 0.125],
  },
  "rollout-b": {
    task: "task-berlin",
    revision: 2,
    ids: [303, 404],
    logprobs: [-0.125, -0.5],
    rewards: [0.25, -0.125],
    advantages: [0.0625, -0.5],
  },
};
export const PROOFS = {
  "rollout-a": [{ kind: "execution", digest: digestJson("claims.proof", "a"), reference: "exec://proof-a" }],
  "rollout-b": [
    { kind: "execution", digest: digestJson("claims.proof", "b"), reference: "exec://proof-b" },
    {
      kind: "validator-bundle",
      digest: digestJson("claims.proof", "bundle"),
      reference: "validator://bundle-1",
    },
  ],
};

/** The exchange form of a rollout; `over` replaces its fields, `stream` the fields of its stream. */
export function draft(name, over = {}, stream = {}) {
  const { task, revision: number, ...columns } = SAMPLES[name] ?? SAMPLES["rollout-a"];
  const id = `policy-r${number}`;
  return {
    schema: "rollbook.rollout.v1",
    rolloutId: name,
    environment: "env.weather@1",
    task: { id: task },
    group: "group-1",
    seed: "7",
    dataSource: "synthetic",
    sampling: { temperature: 1 },
    calls: [],
    scores: [],
    ending: { kind: "terminal" },
    streams: [
      {
        level: "token",
        family: FAMILY,
        logprobKind: "sampling",
        revision: { id, digest: weights(id) },
        ...columns,
        ...stream,
      },
    ],
    envelope: { worker: "worker-a", startedAtMs: 1100, endedAtMs: 1110, proofs: PROOFS[name] ?? [] },
    ...over,
  };
}

export function stepStream(family = "router") {
  const candidate = (id, probability) => ({ id, selectable: true, reasons: [], probability });
  return {
    level: "step",
    family,
    steps: [
      {
        revision: { id: `${family}-r1`, digest: weights(`${family}-r1`) },
        turn: 0,
        candidates: [candidate("small", 0.75), candidate("large", 0.25)],
        chosen: 0,
        reward: 1,
      },
    ],
  };
}

export function rollout(name, over, stream) {
  return sealRollout(parseRolloutDraft(draft(name, over, stream)));
}

/** Sealed records by digest. */
export class Shelf {
  blobs = new Map();
  artifacts = [];
  revisions = [];

  constructor(...sealed) {
    for (const each of sealed) this.add(each);
  }

  add(sealed) {
    for (const blob of sealed.blobs ?? [sealed]) this.blobs.set(blob.digest, blob);
    if (sealed.blobs !== undefined)
      this.artifacts.push({ content: sealed.content.digest, envelope: sealed.envelope.digest });
    else if (sealed.kind === PolicyRevision.kind) this.revisions.push(sealed.digest);
  }

  manifest() {
    const manifest = sealManifest({ artifacts: this.artifacts, revisions: this.revisions });
    this.add(manifest);
    return manifest.digest;
  }

  read = async (digest) => this.blobs.get(digest);

  open(digest) {
    const { kind, bytes } = this.blobs.get(digest);
    return openRecord(recordType(kind), bytes);
  }

  assemble({ target = revision(3), seed = 1n, advantage = "claimed", selection = {} } = {}) {
    this.blobs.set(target.digest, target);
    return assembleBatch({
      read: this.read,
      write: (blob) => this.blobs.set(blob.digest, blob),
      manifest: this.manifest(),
      target: target.digest,
      selection: { level: "token", ...selection },
      options: { advantage },
      seed,
    });
  }
}

/** The revisions r1 to r3 and the two rollouts. */
export function filledShelf(...more) {
  return new Shelf(
    revision(1),
    revision(2),
    revision(3),
    rollout("rollout-a"),
    rollout("rollout-b"),
    ...more,
  );
}

/** Runs `work` with the command line on a new book, which is removed afterwards. */
export async function withCli(work) {
  const folder = mkdtempSync(join(tmpdir(), "rollbook-claims-"));
  const book = join(folder, "book");
  const cli = async (words, stdin = "") => {
    const out = [];
    const err = [];
    const code = await run(words.split(" "), {
      stdin: (async function* () {
        yield Buffer.from(stdin);
      })(),
      out: (text) => out.push(text),
      err: (text) => err.push(text),
      live: false,
      env: { ROLLBOOK_BOOK: book, ROLLBOOK_HOME: join(folder, "home") },
      home: folder,
      clock: manualClock(1000),
    });
    if (code !== 0) throw new Error(`rollbook ${words}: exit ${code}: ${err.join("")}`);
    return out.join("");
  };
  const json = async (words, stdin) => JSON.parse(await cli(`${words} --json`, stdin));
  try {
    await cli("init");
    await cli("keys new");
    return await work({ cli, json, book, folder });
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** JSON Lines. */
export function lines(...values) {
  return values.map((value) => `${JSON.stringify(value)}\n`).join("");
}

export const LOOP_INPUT = () =>
  lines(revisionJson(1), revisionJson(2), revisionJson(3), draft("rollout-a"), draft("rollout-b"));

/** The code of the refusal of `action`; "accepted" if it is not refused. */
export async function codeOf(action) {
  try {
    await action();
    return "accepted";
  } catch (error) {
    if (isRollbookError(error)) return error.code;
    throw error;
  }
}
