import { createServer, type RequestListener } from "node:http";
import { type AddressInfo, connect, createServer as createNetServer, type Socket } from "node:net";
import OpenAI from "openai";
import { describe, expect, it, onTestFinished } from "vitest";
import { CLOSED_URL, freePort } from "../../../../test/support/free-port.ts";
import { TestGateway, TOKEN } from "../../../../test/support/gateway.ts";
import { collect, launchWorld } from "../../../../test/support/launch-world.ts";
import { chatReply, json, slow } from "../../../../test/support/scripted-upstream.ts";
import { RollbookError } from "../../../base/index.ts";
import { CAPS, type Cap } from "../../gateway-replies.ts";
import { defineRollout, type RolloutFunction } from "../agent/agent.ts";
import { failedBy } from "../agent/failure.ts";
import { compositeReward, costTerm, verificationTerm } from "../agent/reward.ts";
import type { SealedResult } from "../launch/result.ts";
import type { GatewayPlace } from "./check-gateway-book.ts";
import { gatewayRecorder } from "./gateway-recorder.ts";
import { bookRecorder, type Recorder } from "./recorder.ts";

const ask: RolloutFunction = async (_, { baseUrl, apiKey, signal }) => {
  const client = new OpenAI({ baseURL: baseUrl!, apiKey: apiKey!, maxRetries: 0 });
  const reply = await client.chat.completions.create(
    { model: "tiny", messages: [{ role: "user", content: "2 + 2" }] },
    { signal },
  );
  return reply.choices[0]!.message.content === "4" ? 1 : 0;
};

type RunOptions = Readonly<Record<string, unknown>> & { readonly task?: object };

async function world(config: object = {}) {
  const test = await TestGateway.open({ upstreams: { main: { retries: 0 } }, ...config });
  const { start } = await launchWorld();
  const recorder = gatewayRecorder({ url: `${test.gateway.url}/`, token: TOKEN }, bookRecorder());
  const run = (agent: RolloutFunction, { task = { q: 1 }, ...options }: RunOptions = {}) =>
    collect(start([task], agent, { recorder, book: test.book, ...options } as never));
  return { test, run, recorder };
}

describe("rollouts recorded by a gateway", () => {
  it("are sealed with their calls, scores and assignment; usage is read from the calls", async () => {
    const { test, run } = await world();
    test.upstream.play(json(chatReply({ content: "4" })));
    const [result] = await run(ask);
    expect(result).toMatchObject({
      state: "sealed",
      reward: 1,
      usage: { calls: 1, promptTokens: 7, completionTokens: 3 },
    });
    const [artifact] = await test.artifacts();
    expect(artifact).toMatchObject({
      rolloutId: result!.rolloutId,
      assignment: { sample: 0 },
      group: result!.group,
    });
  });

  it("are known as sealed here, once, where the gateway is of this process", async () => {
    const { test, run, recorder } = await world();
    test.upstream.otherwise = json(chatReply({ content: "4" }));
    const place = { url: test.gateway.url, token: TOKEN, desk: test.gateway.desk };
    const near = gatewayRecorder(place, bookRecorder());
    const asked: [string, boolean][] = [];
    for (const [name, each] of Object.entries({ far: recorder, near })) {
      const sealedHere: Recorder["sealedHere"] = (envelope) => {
        const isHere = each.sealedHere!(envelope);
        asked.push([name, isHere], [name, each.sealedHere!(envelope)]);
        return isHere;
      };
      const [result] = await run(ask, { recorder: { ...each, sealedHere }, exp: name });
      expect(result).toMatchObject({ state: "sealed", reward: 1, usage: { calls: 1 } });
    }
    expect(asked).toEqual([
      ["far", false],
      ["far", false],
      ["near", true],
      ["near", false],
    ]);
  });

  it("that fail after a refused call say why the gateway refused it", async () => {
    const { run } = await world({ defaultUpstream: undefined });
    const careless: RolloutFunction = async (_, { baseUrl, apiKey }) => {
      const response = await fetch(`${baseUrl}/chat/completions`, {
        method: "POST",
        headers: { authorization: `Bearer ${apiKey}` },
        body: JSON.stringify({ model: "nope", messages: [{ role: "user", content: "2 + 2" }] }),
      });
      const { choices } = (await response.json()) as { choices: { message: { content: string } }[] };
      return choices[0]!.message.content === "4" ? 1 : 0;
    };
    const [result] = await run(careless);
    const reason =
      /^the gateway refused its last call: 404 no model is called "nope"; known: tiny\. Then it failed: .*reading '0'/;
    expect(result).toMatchObject({ ending: { owner: "agent", message: expect.stringMatching(reason) } });
  });

  it("carry final state, metrics and scores that name their scorer; its cost term knows what the calls cost", async () => {
    const { test, run } = await world();
    test.upstream.play(json(chatReply({ content: "4" })));
    const scorer = compositeReward({
      name: "sums",
      terms: [
        verificationTerm(({ finalState }) => finalState === 4),
        costTerm({ weight: 0.5, perUsd: 26e-6 }),
      ],
    });
    const agent = defineRollout(
      async (payload, context) => {
        await ask(payload, context);
        return { reward: 9, finalState: 4, metrics: { asked: 1 } };
      },
      { scorer },
    );
    const [result] = await run(agent as never);
    expect(result).toMatchObject({ state: "sealed", reward: 0.75 });
    const [artifact] = await test.artifacts();
    expect(artifact!.scores).toEqual([
      { name: "verification", value: 1, weight: 1, scorer: scorer.digest },
      { name: "cost", value: -0.5, weight: 0.5, scorer: scorer.digest },
      { name: "reward", value: 9, weight: 0 },
      { name: "asked", value: 1, weight: 0 },
    ]);
    expect(artifact!.ending).toEqual({ kind: "terminal", declaredBy: "executor" });
    expect(Buffer.from((await test.book.get(artifact!.finalState))!.bytes).toString()).toBe("4");
  });

  it("whose worker died are closed when they are claimed again, and not only when they are idle", async () => {
    const { test, run, recorder } = await world();
    test.upstream.play(json(chatReply({ content: "4" })), json(chatReply({ content: "4" })));
    const names: string[] = [];
    const dying: Recorder = {
      ...recorder,
      async open(opening) {
        const recording = await recorder.open(opening);
        names.push(opening.rolloutId);
        if (opening.attempt > 1) return recording;
        const client = new OpenAI({ baseURL: recording.baseUrl!, apiKey: recording.apiKey!, maxRetries: 0 });
        await client.chat.completions.create({
          model: "tiny",
          messages: [{ role: "user", content: "2 + 2" }],
        });
        throw failedBy("infrastructure", "the worker is gone, and closes nothing");
      },
    };
    const [result] = await run(ask, { recorder: dying });
    expect(result).toMatchObject({ state: "sealed", reward: 1, attempt: 2, usage: { calls: 1 } });
    // The usage of the killed run is counted separately.
    const { usage, givenUp } = result as SealedResult;
    expect(givenUp).toEqual({ ...usage, runs: 1 });
    expect(usage.costUsd).toBeGreaterThan(0);
    const [id] = names;
    const open = (await (
      await fetch(`${test.gateway.url}/v1/rollouts`, { headers: { authorization: `Bearer ${TOKEN}` } })
    ).json()) as { rollouts: { id: string }[] };
    expect(open.rollouts).toEqual([]);
    const artifacts = await test.artifacts();
    expect(artifacts.map(({ rolloutId, ending }) => [rolloutId, ending.kind, ending.owner])).toEqual([
      [id, "failed", "infrastructure"],
      [`${id}.run-2`, "terminal", undefined],
    ]);
  });

  it("that fail by the provider are tried again under a name of their own, and the result is the last one", async () => {
    const { test, run } = await world();
    test.upstream.play(json({ error: { message: "overloaded" } }, 503));
    test.upstream.play(json(chatReply({ content: "4" })));
    const [result] = await run(ask);
    expect(result).toMatchObject({ state: "sealed", reward: 1, attempt: 2 });
    const artifacts = await test.artifacts();
    const endings = artifacts.map(({ rolloutId, ending }) => [rolloutId, ending.kind, ending.owner]).sort();
    expect(endings).toEqual([
      [result!.rolloutId, "failed", "provider"],
      [`${result!.rolloutId}.run-2`, "terminal", undefined],
    ]);
  });

  it("in a new queue pass over the names of earlier attempts, and count none of them", async () => {
    const { test, run, recorder } = await world();
    for (let i = 0; i < 2; i++) test.upstream.play(json({ error: { message: "overloaded" } }, 503));
    test.upstream.play(json(chatReply({ content: "4" })));
    const near = gatewayRecorder(
      { url: test.gateway.url, token: TOKEN, desk: test.gateway.desk },
      bookRecorder(),
    );
    // A process that tries twice and dies: its names are closed, and there is no result.
    let opened = 0;
    const dying: Recorder = {
      ...recorder,
      async open(opening) {
        if (++opened > 2) throw new RollbookError("read-only", {}, "the disk is full");
        return recorder.open(opening);
      },
    };
    await expect(run(ask, { recorder: dying })).rejects.toThrow("the disk is full");
    const lines: string[] = [];
    for (const [name, each] of Object.entries({ far: recorder, near })) {
      const [result] = await run(ask, {
        ...{ recorder: each, queue: (await launchWorld()).queue, log: (line: string) => lines.push(line) },
      });
      expect([name, result]).toMatchObject([name, { state: "sealed", attempt: 1 }]);
    }
    expect(lines).toEqual([]);
    expect((await test.artifacts()).map(({ rolloutId }) => rolloutId.replace(/^[^.]*/, "")).sort()).toEqual([
      ...["", ".run-2", ".run-3"],
    ]);
  });

  it("in a new queue close attempts that a killed process left open, and say nothing", async () => {
    const { test, run, recorder } = await world();
    test.upstream.otherwise = json(chatReply({ content: "4" }));
    const near = gatewayRecorder(
      { url: test.gateway.url, token: TOKEN, desk: test.gateway.desk },
      bookRecorder(),
    );
    for (const [name, each] of Object.entries({ far: recorder, near })) {
      const task = { q: name };
      // A process that is killed after its first call leaves the attempt open.
      const killed: Recorder = {
        ...each,
        async open(opening) {
          const { baseUrl, apiKey } = await each.open(opening);
          await ask({}, { baseUrl, apiKey, signal: opening.signal } as never);
          throw new RollbookError("read-only", {}, "killed");
        },
      };
      await expect(run(ask, { recorder: killed, worker: "first", task })).rejects.toThrow("killed");
      const lines: string[] = [];
      const [result] = await run(ask, {
        ...{ recorder: each, worker: "second", queue: (await launchWorld()).queue, task },
        log: (line: string) => lines.push(line),
      });
      expect([name, lines, result]).toMatchObject([name, [], { state: "sealed", attempt: 1, reward: 1 }]);
      const endings = (await test.artifacts())
        .filter(({ rolloutId }) => rolloutId.startsWith(result!.rolloutId))
        .map(({ rolloutId, ending }) => [rolloutId, ending.kind, ending.owner]);
      expect(endings).toEqual([
        [result!.rolloutId, "failed", "infrastructure"],
        [`${result!.rolloutId}.run-2`, "terminal", undefined],
      ]);
    }
  });

  it.each(
    Object.entries({
      "turn-cap": { config: {}, limits: { maxTurns: 3 }, calls: 3 },
      "size-cap": { config: { limits: { rolloutBytes: 2_000 } }, limits: {}, calls: 2 },
      "budget-cap": { config: {}, limits: { budgetUsd: 20e-6 }, calls: 2 },
      "budget-reserved": { config: {}, limits: { budgetUsd: 20e-6 }, calls: 1 },
    } satisfies Record<Cap, object>) as [Cap, { config: object; limits: object; calls: number }][],
  )(
    "that are refused by the %s are truncated, which is no failure",
    async (cap, { config, limits, calls }) => {
      const { test, run } = await world(config);
      test.upstream.otherwise = slow(json(chatReply({ content: "x".repeat(1_000) })), 20);
      const agent: RolloutFunction = async (payload, context) => {
        if (cap === "budget-reserved") {
          const both = await Promise.allSettled([ask(payload, context), ask(payload, context)]);
          throw both.flatMap((one) => (one.status === "rejected" ? [one.reason] : []))[0];
        }
        for (;;) await ask(payload, context);
      };
      const [result] = await run(agent, { limits });
      const ending = { kind: "truncated", limit: CAPS[cap].limit };
      expect(result).toMatchObject({ state: "sealed", ending, usage: { calls } });
      expect((await test.artifacts()).map((artifact) => artifact.ending)).toMatchObject([ending]);
    },
  );

  it("that call no model are sealed all the same", async () => {
    const { run } = await world();
    expect(await run(() => 0.5)).toMatchObject([{ state: "sealed", reward: 0.5, usage: { calls: 0 } }]);
  });

  it("wait for a gateway that is started again, and lose no attempt to the gap", async () => {
    const { test, run } = await world();
    test.upstream.otherwise = json(chatReply({ content: "4" }));
    const door = await doorTo(test.gateway.url);
    const lines: string[] = [];
    const place = { url: door.url, token: TOKEN };
    const waiting = gatewayRecorder(place, bookRecorder(), { log: (line) => lines.push(line) });
    const recorder: Recorder = {
      ...waiting,
      async checkBook(book) {
        await waiting.checkBook!(book);
        door.shut();
        setTimeout(() => void door.open(), 700);
      },
    };
    const results = await run(ask, { recorder, samples: 6, retryBaseMs: 1 });
    expect(results).toMatchObject(Array(6).fill({ state: "sealed", reward: 1, attempt: 1 }));
    expect(lines).toEqual([
      expect.stringMatching(/does not answer; waiting up to 60 s$/),
      expect.stringMatching(/answers again after \d s$/),
    ]);
  });

  it("that a gateway cut off by its end name the gateway, and no worker", async () => {
    const { test, run } = await world();
    test.upstream.otherwise = json(chatReply({ content: "4" }));
    const door = await doorTo(test.gateway.url);
    const cut = gatewayRecorder({ url: door.url, token: TOKEN }, bookRecorder(), { waitMs: 0 });
    const recorder: Recorder = {
      ...cut,
      async open(opening) {
        const recording = await cut.open(opening);
        if (opening.attempt > 1) return recording;
        const client = new OpenAI({ baseURL: recording.baseUrl!, apiKey: recording.apiKey!, maxRetries: 0 });
        await client.chat.completions.create({ model: "tiny", messages: [{ role: "user", content: "2" }] });
        door.shut();
        await expect(recording.usage()).rejects.toThrow("cannot be reached");
        await door.open();
        throw failedBy("infrastructure", "the gateway was away");
      },
    };
    expect(await run(ask, { recorder })).toMatchObject([{ state: "sealed", attempt: 2 }]);
    const [first] = (await test.artifacts()).filter(({ ending }) => ending.kind === "failed");
    expect(first!.ending.message).toBe(
      `the gateway at ${door.url} could not be reached before it ended; the rollout was claimed again`,
    );
  });

  it("are ours to answer for when the gateway goes away after the launch began", async () => {
    const { run } = await world();
    const place = { url: CLOSED_URL };
    const { checkBook: _, ...gone } = gatewayRecorder(place, bookRecorder(), { waitMs: 0 });
    const [result] = await run(ask, { recorder: gone });
    expect(result).toMatchObject({
      state: "dead",
      attempt: 3,
      reason: expect.stringContaining("cannot be reached"),
    });
  });
});

/** Simulates a gateway that is killed and started again: its port is closed for a while. */
async function doorTo(gateway: string) {
  const sockets: Socket[] = [];
  const server = createNetServer((socket) => {
    sockets.push(socket);
    const there = connect(Number(new URL(gateway).port), "127.0.0.1");
    socket.pipe(there).pipe(socket);
    for (const each of [socket, there]) each.on("error", () => {});
  });
  const listen = (port: number) =>
    new Promise<void>((done) => server.listen(port, "127.0.0.1", () => done()));
  const port = await freePort();
  await listen(port);
  onTestFinished(() => void server.close());
  return {
    url: `http://127.0.0.1:${port}`,
    open: () => listen(port),
    shut() {
      server.close();
      for (const each of sockets) each.destroy();
    },
  };
}

async function listening(answer: RequestListener) {
  const server = createServer(answer);
  await new Promise<void>((done) => server.listen(0, "127.0.0.1", done));
  return { server, url: `http://127.0.0.1:${(server.address() as AddressInfo).port}` };
}

describe("a launch through a gateway", () => {
  /** Launches on a separate book, with an agent that counts its runs. */
  async function launchOver(place: GatewayPlace) {
    const world = await launchWorld();
    let runs = 0;
    const agent: RolloutFunction = () => ++runs;
    const recorder = gatewayRecorder(place, bookRecorder());
    const error = await collect(world.start([{ q: 1 }], agent, { recorder })).then(
      () => undefined,
      (thrown: unknown) => thrown,
    );
    const { waiting, claimed } = await world.queue.counts();
    return { ...world, error, runs, queued: waiting + claimed };
  }

  it("on another book is refused before anything is queued or run", async () => {
    const { test } = await world();
    const { error, runs, queued, book } = await launchOver({ url: test.gateway.url, token: TOKEN });
    expect(error).toMatchObject({ code: "other-book" });
    for (const part of [test.gateway.url, test.root, test.book.id, book.root, book.id])
      expect((error as Error).message).toContain(part);
    expect([runs, queued, test.upstream.asked.length]).toEqual([0, 0, 0]);
  });

  it("that is away, or does not take the token, is refused before anything is queued or run", async () => {
    const { test } = await world();
    const { url } = test.gateway;
    const away = await launchOver({ url: CLOSED_URL });
    const message = expect.stringContaining("ECONNREFUSED");
    expect(away).toMatchObject({ error: { code: "no-gateway", message }, runs: 0, queued: 0 });
    const refused = await launchOver({ url, token: "another" });
    expect(refused).toMatchObject({ error: { code: "gateway-refused" }, runs: 0, queued: 0 });
  });

  it("of several records at one that answers, and refuses to start when one writes to another book", async () => {
    const { test, run } = await world();
    test.upstream.otherwise = json(chatReply({ content: "4" }));
    const url = `${CLOSED_URL}, ${test.gateway.url}/v1/`;
    const recorder = gatewayRecorder({ url, token: TOKEN }, bookRecorder());
    const results = await run(ask, { recorder, samples: 4 });
    expect(results).toMatchObject(Array(4).fill({ state: "sealed", reward: 1, attempt: 1 }));
    const { error, runs } = await launchOver({ url, token: TOKEN });
    expect([error, runs]).toMatchObject([{ code: "other-book" }, 0]);
  });

  it("that begins to listen a moment later waits for it", async () => {
    const { test } = await world();
    const { book, root } = test;
    const server = createServer((_, response) => response.end(JSON.stringify({ id: book.id, root })));
    const port = await freePort();
    setTimeout(() => server.listen(port, "127.0.0.1"), 600);
    onTestFinished(() => void server.close());
    const { error } = await launchOver({ url: `http://127.0.0.1:${port}` });
    expect(error).toMatchObject({ code: "other-book" });
  });

  it.each([
    ["answers 404, as an older gateway does", 404, '{"error":{"code":"not-found"}}'],
    ["answers something else", 200, "<html></html>"],
    ["names no book", 200, "{}"],
  ])("that %s is refused", async (_what, status, body) => {
    const { server, url } = await listening((_, response) => response.writeHead(status).end(body));
    onTestFinished(() => void server.close());
    const { error, runs, queued } = await launchOver({ url });
    expect(error).toMatchObject({ code: "gateway-without-book" });
    expect([runs, queued]).toEqual([0, 0]);
  });
});

describe("a gateway", () => {
  it("tells its book to whoever has the token, and to no rollout's key", async () => {
    const { test } = await world();
    const askAs = async (key: string) =>
      (await fetch(`${test.gateway.url}/v1/book`, { headers: { authorization: `Bearer ${key}` } })).json();
    expect(await askAs(TOKEN)).toEqual({ id: test.book.id, root: test.root });
    const { apiKey } = await test.openRollout();
    expect(await askAs(apiKey)).toMatchObject({ error: { code: "forbidden" } });
  });
});
