import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import { fastFolder } from "../../../../test/support/fast-folder.ts";
import { rejectionOf } from "../../../../test/support/refusal-of.ts";
import { ReplayWorld } from "../../../../test/support/replay-world.ts";
import { canonicalize } from "../../../base/canonical-json.ts";
import { manualClock } from "../../../base/clock.ts";
import { parseId } from "../../../base/ids.ts";
import { openRecord } from "../../../contract/codec/record.ts";
import { RolloutContent } from "../../../contract/rollout/rollout.ts";
import { readTokenColumns } from "../../../contract/rollout/rollout-exchange.ts";
import type { StepStream, TokenStream } from "../../../contract/rollout/stream.ts";
import { appendReplay, openReplay, type ReplayStore, validateReplay, writeReplay } from "../index.ts";
import { columnsOf, TABLES } from "../tables/schema.ts";

const folder = fastFolder("replay-write");
afterAll(() => rmSync(folder, { recursive: true, force: true }));
const clock = manualClock(1000);
const quick = { clock, durable: false } as const;

/** All rows of a table as objects, dictionary columns as texts. */
async function rowsOf(
  store: ReplayStore,
  table: "steps" | "candidates" | "chains" | "lineage" | "sources" | "targets" | "tokens",
) {
  const rows: Record<string, unknown>[] = [];
  for await (const { columns, texts, from, to } of store.blocks(table, columnsOf(table) as never[])) {
    for (let i = 0; i < to - from; i++) {
      const row: Record<string, unknown> = {};
      for (const [name, values] of Object.entries(columns as Record<string, ArrayLike<unknown>>)) {
        const spec = (
          TABLES[table].columns as Record<string, { dictionary?: true; row?: unknown; dtype: string }>
        )[name]!;
        if (spec.row !== undefined)
          row[name] = Buffer.from((values as Uint8Array).slice(i * 32, i * 32 + 32)).toString("hex");
        else if (spec.dictionary) row[name] = texts[values[i] as number];
        else row[name] = spec.dtype === "bool" ? values[i] === 1 : values[i];
      }
      rows.push(row);
    }
  }
  return rows;
}

describe("a written store", () => {
  const world = new ReplayWorld({ seed: 3 });
  const root = join(folder, "whole");
  let store: ReplayStore;
  const contents = () =>
    world.rollouts.map((digest) => ({
      digest,
      content: openRecord(RolloutContent, world.blobs.get(digest)!.bytes),
    }));

  it("holds every decision and every candidate as the record has them, invalid ones included", async () => {
    world.add(30);
    await writeReplay({ root, read: world.read, rollouts: world.rollouts.slice(0, 20), ...quick });
    await appendReplay({
      root,
      read: world.read,
      rollouts: world.rollouts.slice(20),
      ...quick,
      limits: { candidates: 40 },
    });
    store = await openReplay(root);
    expect(store.segments.length).toBeGreaterThan(2);
    const steps = await rowsOf(store, "steps");
    const candidates = await rowsOf(store, "candidates");
    const recorded = contents().flatMap(({ content }) =>
      content.streams
        .filter((stream): stream is StepStream => stream.level === "step")
        .flatMap((stream) => stream.steps),
    );
    expect(steps.length).toBe(recorded.length);
    let row = 0;
    for (const [i, step] of recorded.entries()) {
      expect(steps[i]).toMatchObject({
        policy: step.revision.digest,
        turn: step.turn,
        reward: step.reward ?? Number.NaN,
        before: step.before,
        after: step.after,
        candidates_start: row,
        candidates_count: step.candidates.length,
        selected: row + step.chosen,
      });
      for (const [index, each] of step.candidates.entries()) {
        expect(candidates[row++]).toMatchObject({
          step: i,
          index,
          id: each.id,
          selectable: each.selectable,
          selected: index === step.chosen,
          probability: each.probability ?? Number.NaN,
          label: each.label ?? Number.NaN,
          diagnostic: each.diagnostic ?? Number.NaN,
          provenance: each.provenance,
          labelled: each.label !== undefined,
        });
      }
    }
    expect(candidates.length).toBe(row);
    expect(candidates.some(({ selectable }) => selectable === false)).toBe(true);
  });

  it("names the reasons against a candidate by bits that mean the same in every segment", async () => {
    const candidates = await rowsOf(store, "candidates");
    const recorded = contents().flatMap(({ content }) =>
      content.streams.flatMap((stream) =>
        stream.level === "step" ? stream.steps.flatMap((step) => step.candidates) : [],
      ),
    );
    for (const [i, each] of recorded.entries()) {
      const bits = candidates[i]!.reasons as bigint;
      const names = store.manifest.reasons.filter((_, bit) => (bits >> BigInt(bit)) & 1n);
      expect([...names].sort()).toEqual([...each.reasons].sort());
    }
    expect(store.manifest.reasons.length).toBe(3);
  });

  it("keeps token streams in their own table, with a revision per token", async () => {
    const chains = await rowsOf(store, "chains");
    const tokens = await rowsOf(store, "tokens");
    let checked = 0;
    for (const { digest, content } of contents()) {
      for (const [index, stream] of content.streams.entries()) {
        if (stream.level !== "token") continue;
        const columns = await readTokenColumns(world.read, stream as TokenStream);
        const chain = chains.find((each) => each.content === digest.slice(7) && each.stream === index)!;
        const start = Number(chain.tokens_start);
        const mine = tokens.slice(start, start + stream.length);
        expect(mine.map(({ id }) => id)).toEqual([...columns.ids]);
        expect(mine.map(({ logprob }) => logprob)).toEqual([...columns.logprobs]);
        expect(mine.map(({ mask }) => Number(mask))).toEqual([...columns.mask]);
        expect(mine.map(({ policy }) => policy)).toEqual(
          mine.map(
            (_, i) => stream.segments.find((part) => i >= part.start && i < part.end)?.revision.digest,
          ),
        );
        expect(chain).toMatchObject({ steps_count: 0, logprob_kind: "sampling", level: "token" });
        checked++;
      }
    }
    expect(checked).toBe(10);
  });

  it("binds each chain to everything that shaped it, one to one", async () => {
    const lineage = await rowsOf(store, "lineage");
    const chains = await rowsOf(store, "chains");
    expect(lineage.map(({ chain }) => chain)).toEqual(chains.map((_, i) => i));
    const byDigest = new Map(contents().map(({ digest, content }) => [digest.slice(7), content]));
    for (const [i, chain] of chains.entries()) {
      const content = byDigest.get(chain.content as string)!;
      expect(lineage[i]).toMatchObject({
        environment: content.environment,
        oracle: content.configs!.oracle,
        candidate_mixture: content.configs!["candidate-mixture"],
        target: undefined,
        seed: content.seed,
      });
    }
  });

  it("stores a context that decisions share once, with the split of its task", async () => {
    const sources = await rowsOf(store, "sources");
    const steps = await rowsOf(store, "steps");
    expect(sources.length).toBeLessThan(steps.length + store.rows("tokens"));
    expect(new Set(sources.map(({ split }) => split))).toEqual(new Set(["train", "test"]));
  });

  it("marks labels of rollouts that say nothing about the policy as not trainable", async () => {
    const targets = await rowsOf(store, "targets");
    const chains = await rowsOf(store, "chains");
    for (const chain of chains) {
      const outside = ["failed:provider", "cancelled"].includes(chain.ending as string);
      expect(targets[chain.target as number]!.valid).toBe(!outside);
      expect(chain.terminal).toBe(["terminal", "failed:agent"].includes(chain.ending as string));
    }
    store.close();
  });

  it("has a bare root that says where the rows are, so that no segment passes for the whole", () => {
    const root_ = JSON.parse(readFileSync(join(root, "zarr.json"), "utf8"));
    expect(root_).toMatchObject({ node_type: "group", attributes: { layout: "segmented", generation: 2 } });
    expect(root_.consolidated_metadata).toBeUndefined();
  });
});

it("the same rollouts, clock and layout give the same bytes", async () => {
  const world = new ReplayWorld();
  world.add(5);
  const digests = [];
  for (const name of ["same-a", "same-b"]) {
    const { manifest } = await writeReplay({
      root: join(folder, name),
      read: world.read,
      rollouts: world.rollouts,
      ...quick,
    });
    digests.push(manifest.digest);
  }
  expect(digests[0]).toBe(digests[1]);
});

it("appending what is there already changes nothing and says so", async () => {
  const world = new ReplayWorld();
  const root = join(folder, "twice");
  const { manifest } = await writeReplay({ root, read: world.read, rollouts: world.add(4), ...quick });
  const again = await appendReplay({ root, read: world.read, rollouts: world.rollouts, ...quick });
  expect(again).toMatchObject({ chains: 0, skipped: manifest.rows.chains });
  expect(again.manifest).toEqual(manifest);
  const more = await appendReplay({
    root,
    read: world.read,
    rollouts: [...world.rollouts, ...world.add(1)],
    ...quick,
  });
  expect(more.chains).toBe(more.manifest.rows.chains! - manifest.rows.chains!);
  expect((await validateReplay(root)).errors).toEqual([]);
});

it.each([
  ["zstd", { codec: "zstd" }],
  ["gzip", { codec: "gzip" }],
  ["shards of small chunks", { chunkBytes: 64, shardChunks: 4 }],
  ["compressed shards", { codec: "zstd", chunkBytes: 128, shardChunks: 2 }],
] as const)("%s: a store validates and reads as the plain one does", async (name, layout) => {
  const world = new ReplayWorld();
  world.add(12);
  const root = join(folder, name.replaceAll(" ", "-"));
  await writeReplay({ root, read: world.read, rollouts: world.rollouts, layout, ...quick });
  expect((await validateReplay(root)).errors).toEqual([]);
  const plain = join(folder, `${name.replaceAll(" ", "-")}-plain`);
  await writeReplay({ root: plain, read: world.read, rollouts: world.rollouts, ...quick });
  const [a, b] = [await openReplay(root), await openReplay(plain)];
  expect(await rowsOf(a, "candidates")).toEqual(await rowsOf(b, "candidates"));
  a.close();
  b.close();
});

describe("refused:", () => {
  const world = new ReplayWorld();
  const rollouts = world.add(2);
  const write = (name: string, over: object = {}) =>
    writeReplay({ root: join(folder, name), read: world.read, rollouts, ...quick, ...over });

  it("to write over a store, into a directory with other things, or nothing at all", async () => {
    await write("taken");
    expect(await rejectionOf(write("taken"))).toMatchObject({ code: "replay-exists" });
    const foreign = mkdtempSync(join(folder, "foreign-"));
    writeFileSync(join(foreign, "thesis.txt"), "x");
    expect(
      await rejectionOf(writeReplay({ root: foreign, read: world.read, rollouts, ...quick })),
    ).toMatchObject({ code: "not-empty" });
    expect(await rejectionOf(write("nothing", { admits: () => false }))).toMatchObject({
      code: "no-rollouts",
    });
    expect(existsSync(join(folder, "nothing", "manifest.json"))).toBe(false);
  });

  it("to append where there is no store", async () => {
    const root = join(folder, "absent");
    expect(await rejectionOf(appendReplay({ root, read: world.read, rollouts, ...quick }))).toMatchObject({
      code: "no-replay-store",
    });
  });

  it("the 65th reason, and the failed call leaves the store as it was", async () => {
    const root = join(folder, "reasons");
    await writeReplay({ root, read: world.read, rollouts, ...quick });
    const before = readFileSync(join(root, "manifest.json"));
    const steps = Array.from({ length: 65 }, (_, i) => ({
      revision: { id: parseId("r"), digest: rollouts[0]! },
      turn: i,
      candidates: [
        { id: "a", selectable: true, reasons: [], probability: 1 },
        { id: "b", selectable: false, reasons: [parseId(`reason-${i}`)], probability: 0 },
      ],
      chosen: 0,
      reward: 0,
    }));
    const many = world.addOne({ streams: [{ level: "step", family: parseId("views"), steps }] });
    const error = await rejectionOf(appendReplay({ root, read: world.read, rollouts: [many], ...quick }));
    expect(error).toMatchObject({ code: "too-many-reasons" });
    expect(readFileSync(join(root, "manifest.json"))).toEqual(before);
    expect(existsSync(join(root, "segments", "s000002"))).toBe(false);
  });

  it("a feature that float32 cannot hold", async () => {
    const steps = [
      {
        revision: { id: parseId("r"), digest: rollouts[0]! },
        turn: 0,
        context: [1e39],
        candidates: [{ id: "a", selectable: true, reasons: [], probability: 1 }],
        chosen: 0,
        reward: 0,
      },
    ];
    const huge = world.addOne({ streams: [{ level: "step", family: parseId("views"), steps }] });
    expect(await rejectionOf(write("huge", { rollouts: [huge] }))).toMatchObject({
      code: "feature-out-of-range",
    });
  });

  it("a store of a newer schema, with the release it needs", async () => {
    const root = join(folder, "newer");
    const { manifest } = await writeReplay({ root, read: world.read, rollouts, ...quick });
    const newer = {
      ...manifest,
      needs: "rollbook 7.0.0",
      tables: { ...manifest.tables, version: 2 },
      novelty: 1,
    };
    writeFileSync(join(root, "manifest.json"), canonicalize(newer));
    const error = await rejectionOf(openReplay(root));
    expect(error).toMatchObject({ code: "newer-replay-schema", fields: { needs: "rollbook 7.0.0" } });
    expect(error.message).toContain("It needs rollbook 7.0.0");
    expect((await validateReplay(root)).errors).toMatchObject([{ array: "manifest.json", code: "manifest" }]);
  });
});
