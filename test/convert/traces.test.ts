/** Conversions to and from verifiers and ATIF. */
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import fc from "fast-check";
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from "vitest";
import type { Digest } from "../../src/base/digest.ts";
import { rolloutsOfAdmitted } from "../../src/book/convert/gather-rollouts.ts";
import { parseRolloutDraft, type SealedRollout, sealRollout } from "../../src/contract/index.ts";
import { readTraces, trainerFormat } from "../../src/convert/formats/index.ts";
import { type HandedRollout, LossTally } from "../../src/convert/handover/index.ts";
import { anyRolloutWire } from "../support/arbitraries.ts";
import { Cli, lines } from "../support/cli.ts";
import { handedBook } from "../support/handed-book.ts";
import { handedWire, revisionWires, taskWire } from "../support/handover-world.ts";
import { stepWire } from "../support/shelf.ts";

// biome-ignore lint/suspicious/noExplicitAny: tests look into records of every shape
type Row = any;

const FORMATS = ["verifiers", "atif"] as const;

function rowsOf(file: string): Row[] {
  return readFileSync(file, "utf8")
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line));
}

/** A sealed rollout as the book hands it over: admitted by its first token stream, or by its first step stream. */
function handedFrom({ content, envelope, blobs }: SealedRollout): AsyncIterable<HandedRollout> {
  const stored = new Map(blobs.map((blob) => [blob.digest, blob]));
  const { rolloutId, group, task, streams } = content.record;
  const tokens = streams.findIndex(({ level }) => level === "token");
  const row = {
    ...{ content: content.digest, envelope: envelope.digest, rolloutId, group, task },
    ...{ stream: Math.max(0, tokens), reward: null, weightBps: 10_000 },
  };
  const admitted = { level: tokens < 0 ? "step" : "token", rows: [row] } as never;
  const source = { read: async (digest: Digest) => stored.get(digest), revisions: () => [] };
  return rolloutsOfAdmitted(source, [admitted], "group");
}

/** Two calls: the first asks for a tool, the second answers with its result. Both calls have tokens, with prompts
 *  between them. */
function toolWire(name: string, over: Row = {}): Row {
  const wire = handedWire(name, { question: 2, ...over }) as Row;
  const [call] = wire.calls;
  const asks = {
    role: "assistant",
    content: null,
    tool_calls: [{ id: "c-1", type: "function", function: { name: "add", arguments: '{"a":2,"b":1}' } }],
  };
  const tools = [
    { type: "function", function: { name: "add", description: "adds", parameters: { type: "object" } } },
  ];
  const { messages } = call.request;
  const revision = wire.streams[0].segments[0].revision;
  wire.calls = [
    { ...call, request: { ...call.request, tools }, response: { ...call.response, messages: [asks] } },
    {
      ...call,
      request: {
        ...call.request,
        tools,
        messages: [...messages, asks, { role: "tool", tool_call_id: "c-1", content: "3" }],
      },
      response: { messages: [{ role: "assistant", content: "It is 3." }], finishReason: "stop", status: 200 },
      costUsd: 0.25,
    },
  ];
  Object.assign(wire.streams[0], {
    ids: [1, 2, 3, 30, 31, 4, 5, 40, 41],
    mask: [0, 0, 0, 1, 1, 0, 0, 1, 1],
    logprobs: [0, 0, 0, -0.5, -1, 0, 0, -0.25, -2],
    rewards: [0, 0, 0, 0, 0, 0, 0, 0, 1],
    segments: [
      { start: 0, end: 5, call: 0, revision },
      { start: 5, end: 9, call: 1, revision },
    ],
  });
  return {
    ...wire,
    streams: [stepWire({ step: { call: 0 } }), ...wire.streams],
    scores: [{ name: "solved", value: 1, weight: 0.5 }],
  };
}

/** A rollout as a gateway records it. The server adds fields to its reply that the next request leaves out. One call
 *  fails, and the agent begins a second conversation. */
function recordedWire(name: string): Row {
  const wire = toolWire(name);
  const [first, second] = wire.calls;
  const served = { ...first.response.messages[0], refusal: null, annotations: [] };
  const strict = { ...first.request.tools[0].function, strict: true };
  const tools = [{ type: "function", function: strict }];
  const parts = [{ type: "text", text: "Another question." }];
  return {
    ...wire,
    calls: [
      {
        ...first,
        request: { ...first.request, tools },
        response: { ...first.response, messages: [served] },
      },
      second,
      { ...second, response: { messages: [], status: 500 } },
      { ...second, request: { ...second.request, messages: [{ role: "user", content: parts }] } },
    ],
  };
}

describe.each(FORMATS)("%s", (format) => {
  it("gives back the rollouts that were exported, by digest", async () => {
    const cli = new Cli();
    await handedBook(cli, { extra: [toolWire("r-tool"), recordedWire("r-recorded")] });
    const out = join(cli.folder, "traces.jsonl");
    await cli.ok(`data convert --to ${format} --out ${out}`);
    const [read] = await cli.json(
      `data convert --from ${format} ${out} --out ${join(cli.folder, "back.jsonl")}`,
    );
    expect(read).toMatchObject({ rollouts: 14, identical: 14 });
    const [again] = await cli.json(`data convert --from ${format} ${out}`);
    expect(again).toMatchObject({ rollouts: 14, identical: 14, imported: null });
    expect(await cli.json("artifact ls")).toHaveLength(14);
  });

  it("brings rollouts into another book with the records that they refer to, and a batch of them is the same", async () => {
    const cli = new Cli();
    await cli.ok(`init`);
    await cli.ok("artifact import examples/rollouts.jsonl");
    const out = join(cli.folder, "traces.jsonl");
    const [exported] = await cli.json(`data convert --to ${format} --out ${out}`);
    const other = new Cli();
    await other.ok("init");
    const [read] = await other.json(`data convert --from ${format} ${out}`);
    expect(read).toMatchObject({
      ...{ rollouts: exported.rows, identical: exported.rows },
      imported: { refused: 0, warnings: [] },
    });
    const contents = async (each: Cli) =>
      new Map((await each.json("artifact ls")).map(({ rolloutId, content }) => [rolloutId, content]));
    const known = await contents(cli);
    for (const [id, content] of await contents(other)) expect(known.get(id)).toBe(content);
    const admitted = [...(await contents(other)).values()].join(" ");
    const cut = `batch assemble --target writer-r2 --level token --artifact ${admitted}`;
    const [[batch], [again]] = [await cli.json(cut), await other.json(cut)];
    expect(again.rows).toBe(batch.rows);
  });

  it("gives back any rollout that it writes, by digest, and counts those that it leaves out", async () => {
    const folder = mkdtempSync(join(tmpdir(), "rollbook-traces-"));
    onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
    let run = 0;
    await fc.assert(
      fc.asyncProperty(anyRolloutWire, async (wire) => {
        const sealed = sealRollout(parseRolloutDraft(wire));
        const losses = new LossTally();
        const written: string[] = [];
        const context = { batch: null, losses, options: {}, warn: () => {} };
        for await (const row of (await trainerFormat(format)).rows(handedFrom(sealed), context))
          written.push(JSON.stringify(row));
        if (written.length === 0) {
          expect(losses.list()).toEqual([{ field: "rollouts without a reply", count: 1 }]);
          return;
        }
        const file = join(folder, `${run++}.jsonl`);
        writeFileSync(file, written.join("\n"));
        for await (const { rollout } of readTraces(file, { from: format, dataSource: "real" }))
          expect(sealRollout(parseRolloutDraft(rollout)).content.digest).toBe(sealed.content.digest);
      }),
      { numRuns: 150, seed: 5 },
    );
  });

  it("gives a trace that was edited an id of its own", async () => {
    const cli = new Cli();
    await handedBook(cli, { questions: 1, size: 1 });
    const out = join(cli.folder, "traces.jsonl");
    await cli.ok(`data convert --to ${format} --out ${out}`);
    const edited = readFileSync(out, "utf8").replaceAll("it is 0", "it is 5");
    const [read] = await cli.json(`data convert --from ${format} ${cli.file("edited.jsonl", edited)}`);
    expect(read).toMatchObject({ rollouts: 1, identical: 0, imported: { imported: 1, warnings: [] } });
    expect(await cli.ok("artifact ls")).toContain(`r-0-0.${format}`);
  });

  it("round-trips any tokens, replies, scores and endings of one conversation", async () => {
    const cli = new Cli();
    await cli.ok("init");
    const place = fc.record({
      id: fc.nat({ max: 2 ** 31 }),
      logprob: fc.float({ min: -50, max: 0, noNaN: true }),
    });
    const rollout = fc.record({
      prompt: fc.array(fc.nat({ max: 2 ** 31 }), { minLength: 1, maxLength: 5 }),
      said: fc.array(place, { minLength: 1, maxLength: 6 }),
      reply: fc.string({ unit: "grapheme", minLength: 1, maxLength: 20 }),
      reward: fc.option(fc.float({ noNaN: true, noDefaultInfinity: true }).map((each) => each + 0)),
      score: fc.option(fc.double({ noNaN: true, noDefaultInfinity: true }).map((each) => each + 0)),
      ending: fc.constantFrom({ kind: "terminal" }, { kind: "truncated", limit: "turns" }),
    });
    const drawn = fc.sample(rollout, { numRuns: 25, seed: 11 });
    const wires = drawn.map(({ prompt, said, reply, reward, score, ending }, i) => {
      const wire = handedWire(`r-${i}`, { reply }) as Row;
      Object.assign(wire.streams[0], {
        ids: [...prompt, ...said.map(({ id }) => id)],
        mask: [...prompt.map(() => 0), ...said.map(() => 1)],
        logprobs: [...prompt.map(() => 0), ...said.map(({ logprob }) => logprob + 0)],
        rewards:
          reward === null
            ? undefined
            : [...prompt.map(() => 0), ...said.map((_, k) => (k === 0 ? reward : 0))],
        segments: [{ ...wire.streams[0].segments[0], end: prompt.length + said.length }],
      });
      return { ...wire, ending, scores: score === null ? [] : [{ name: "s", value: score, weight: 1 }] };
    });
    await cli.ok("artifact import -", lines(...revisionWires(), taskWire(1), ...wires));
    const out = join(cli.folder, "traces.jsonl");
    await cli.ok(`data convert --to ${format} --out ${out}`);
    const [read] = await cli.json(
      `data convert --from ${format} ${out} --out ${join(cli.folder, "back.jsonl")}`,
    );
    expect(read).toMatchObject({ rollouts: 25, identical: 25 });
  });

  it("reads a trace of another program without making anything up", async () => {
    const cli = new Cli();
    await handedBook(cli, { questions: 1, size: 1, extra: [toolWire("r-tool")] });
    const out = join(cli.folder, "traces.jsonl");
    await cli.ok(`data convert --to ${format} --out ${out}`);
    const foreign = rowsOf(out).map((row) => {
      if (format === "atif") return { ...row, extra: undefined, schema_version: "ATIF-v1.4" };
      return {
        ...row,
        traces: row.traces.map((trace: Row) => ({ ...trace, info: {}, rewards: { solved: null } })),
      };
    });
    const other = new Cli();
    await other.ok("init");
    const file = other.file("foreign.jsonl", lines(...foreign));
    const [read] = await other.json(`data convert --from ${format} ${file}`);
    expect(read).toMatchObject({ rollouts: 2, identical: 0 });
    expect(await other.json("artifact ls")).toHaveLength(2);
    const back = join(other.folder, "back.jsonl");
    await other.ok(`data convert --from ${format} ${file} --out ${back}`);
    const rollout = rowsOf(back).find(({ rolloutId }) => rolloutId === "r-tool");
    expect(rollout).toMatchObject({ scores: [], seed: "0", calls: [{ model: "tiny" }, { costUsd: 0.25 }] });
    const [stream] = rollout.streams.filter(({ level }: Row) => level === "token");
    expect(stream).toMatchObject({ ids: [1, 2, 3, 30, 31, 4, 5, 40, 41], revision: { id: "logged" } });
    expect(stream.rewards).toBeUndefined();
  });

  it("refuses an unknown version with its line, and leaves neither file nor rollouts", async () => {
    const cli = new Cli();
    await handedBook(cli, { questions: 1, size: 2 });
    const out = join(cli.folder, "traces.jsonl");
    await cli.ok(`data convert --to ${format} --out ${out}`);
    const rows = rowsOf(out);
    if (format === "atif") rows[1].schema_version = "ATIF-v9.0";
    else rows[1].traces[0].version = 2;
    const other = new Cli();
    await other.ok("init");
    const { code, err } = await other.run(
      `data convert --from ${format} ${other.file("x.jsonl", lines(...rows))}`,
    );
    expect([code, err]).toEqual([1, expect.stringContaining("x.jsonl:2")]);
    expect(err).toContain("[unknown-version]");
    expect(await other.json("artifact ls")).toEqual([]);
  });
});

/** Each entry replaces the field at `path` with `value`. */
const DAMAGES: readonly (readonly [format: (typeof FORMATS)[number], path: string, value: unknown])[] = [
  ...(
    [
      ["steps", "x"],
      ["steps.0", null],
      ["steps.1.tool_calls", "x"],
      ["steps.1.tool_calls", [null]],
      ["steps.1.tool_calls", [{ tool_call_id: "c", function_name: "f", arguments: "{}" }]],
      ["steps.1.metrics", 3],
      ["steps.1.metrics", { logprobs: ["a"] }],
      ["steps.0.observation", [1]],
      ["steps.0.timestamp", 12],
      ["session_id", 5],
      ["agent", "x"],
      ["extra.rollbook.calls", undefined],
      ["extra.rollbook.steps", 5],
      ["extra.rollbook.scores", [null]],
      ["extra.rollbook.records", "x"],
    ] as const
  ).map(([path, value]) => ["atif", path, value] as const),
  ...(
    [
      ["env", "x"],
      ["group", {}],
      ["traces.0.id", 7],
      ["traces.0.nodes", "xy"],
      ["traces.0.nodes.0", null],
      ["traces.0.nodes.0.message.role", "weird"],
      ["traces.0.nodes.0.tools", "x"],
      ["traces.0.nodes.2.mask", [1, 1, 1]],
      ["traces.0.calls", "x"],
      ["traces.0.calls.0", null],
      ["traces.0.calls.0.node", 99],
      ["traces.0.rewards", { a: 5 }],
      ["traces.0.errors", [null]],
      ["traces.0.timing.start", "x"],
      ["traces.0.info.rollbook.calls", undefined],
      ["traces.0.info.rollbook.scorers", null],
      ["traces.0.info.rollbook.whole", {}],
    ] as const
  ).map(([path, value]) => ["verifiers", path, value] as const),
];

describe("a damaged trace", () => {
  let cli: Cli;
  beforeAll(async () => {
    cli = new Cli({ whenDone: afterAll });
    await handedBook(cli, { questions: 1, size: 2 });
    for (const format of FORMATS)
      await cli.ok(`data convert --to ${format} --out ${join(cli.folder, format)}`);
  });

  it.each(DAMAGES)(
    "of %s with %s = %j is refused with its line, and nothing is written",
    async (...damage) => {
      const [format, path, value] = damage;
      const rows = rowsOf(join(cli.folder, format));
      const names = path.split(".");
      const holder = names.slice(0, -1).reduce((at, name) => at[name], rows[1]);
      holder[names.at(-1)!] = value;
      const back = join(cli.folder, "back.jsonl");
      const { code, err } = await cli.run(
        `data convert --from ${format} ${cli.file("x.jsonl", lines(...rows))} --out ${back}`,
      );
      expect([code, err]).toEqual([1, expect.stringContaining("x.jsonl:2")]);
      expect(err).toContain("[bad-row]");
      expect(existsSync(back)).toBe(false);
    },
  );
});

it("a trace whose tokens break a rule of records is refused with its place", async () => {
  const cli = new Cli();
  await handedBook(cli, { questions: 1, size: 1 });
  const out = join(cli.folder, "traces.jsonl");
  await cli.ok(`data convert --to atif --out ${out}`);
  const [row] = rowsOf(out);
  row.steps.find(({ source }: Row) => source === "agent").metrics.logprobs[0] = 0.5;
  const { code, err } = await cli.run(`data convert --from atif ${cli.file("x.jsonl", lines(row))}`);
  expect([code, err]).toEqual([
    1,
    expect.stringMatching(/x\.jsonl:1: .*probability above 1.*\[bad-logprob\]/),
  ]);
});

it("a damaged line of ATIF is named by its number", async () => {
  const cli = new Cli();
  await handedBook(cli, { questions: 1, size: 3 });
  const out = join(cli.folder, "traces.jsonl");
  await cli.ok(`data convert --to atif --out ${out}`);
  const [first, second, third] = readFileSync(out, "utf8").trim().split("\n") as [string, string, string];
  const text = [first, second.slice(0, -9), third].join("\n");
  const { code, err } = await cli.run(`data convert --from atif ${cli.file("x.jsonl", text)}`);
  expect([code, err]).toEqual([1, expect.stringMatching(/x\.jsonl:2:.*\[bad-json\]/)]);
});

it("a trace of 200 000 tokens comes back", async () => {
  const cli = new Cli();
  const long = Array.from({ length: 200_000 }, (_, i) => i % 1000);
  const wire = handedWire("r-long") as Row;
  Object.assign(wire.streams[0], {
    ids: [...long, 7],
    mask: [...long.map(() => 0), 1],
    logprobs: [...long.map(() => 0), -0.5],
    rewards: [...long.map(() => 0), 1],
    segments: [{ ...wire.streams[0].segments[0], end: long.length + 1 }],
  });
  await handedBook(cli, { questions: 1, size: 1, extra: [wire] });
  for (const format of FORMATS) {
    const out = join(cli.folder, `${format}.jsonl`);
    await cli.ok(`data convert --to ${format} --out ${out}`);
    const [read] = await cli.json(`data convert --from ${format} ${out} --out ${out}.back`);
    expect(read).toMatchObject({ rollouts: 2, identical: 2 });
  }
});

describe("verifiers traces", () => {
  it("concatenate from root to leaf to the exact sequence, with a log-probability for each sampled token", async () => {
    const cli = new Cli();
    const batch = await handedBook(cli, { questions: 1, size: 2, extra: [toolWire("r-tool")] });
    const out = join(cli.folder, "traces.jsonl");
    await cli.ok(`data convert --to verifiers --batch ${batch} --out ${out}`);
    const episode = rowsOf(out).find(({ id }) => id === "r-tool");
    const [{ nodes, calls }] = episode.traces;
    expect(nodes.map(({ message }: Row) => message.role)).toEqual([
      "system",
      "user",
      "assistant",
      "tool",
      "assistant",
    ]);
    expect(nodes.flatMap(({ token_ids }: Row) => token_ids)).toEqual([1, 2, 3, 30, 31, 4, 5, 40, 41]);
    expect(nodes.flatMap(({ logprobs }: Row) => logprobs)).toEqual([-0.5, -1, -0.25, -2]);
    expect(calls.map(({ node }: Row) => node)).toEqual([2, 4]);
    expect(episode.group.id).toBe("g-2");
  });

  it("refuse a node whose log-probabilities do not fit its mask", async () => {
    const cli = new Cli();
    await handedBook(cli, { questions: 1, size: 1 });
    const out = join(cli.folder, "traces.jsonl");
    await cli.ok(`data convert --to verifiers --out ${out}`);
    const rows = rowsOf(out);
    rows[0].traces[0].nodes.at(-1).logprobs.pop();
    const { code, err } = await cli.run(
      `data convert --from verifiers ${cli.file("x.jsonl", lines(...rows))}`,
    );
    expect([code, err]).toEqual([1, expect.stringContaining("2 log-probabilities for 3 sampled tokens")]);
  });
});
