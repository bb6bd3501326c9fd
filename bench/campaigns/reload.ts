/** Reloads a router once a second under 200 concurrent clients for 30 s; every fifth checkpoint is torn. One trial is
 *  one request. It passes if the model that answered is the one that the book records as chosen. Three things are
 *  failed trials:
 *  a decision missing from the book, a swap that did not happen, and a torn checkpoint that was served. */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { Agent, request as httpRequest } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { openGateway } from "../../src/book/collect/index.ts";
import { useBook } from "../../src/book/open/index.ts";
import type { LocalUpstream } from "../../src/collect/gateway/index.ts";
import { RolloutContent } from "../../src/contract/index.ts";
import { writeCheckpoint } from "../../src/policy/index.ts";
import { readRecord } from "../../src/store/index.ts";
import { makePolicy } from "../../test/support/served-policies.ts";
import type { Campaign } from "../support/programs.ts";

const CLIENTS = 200;
const RELOADS = 30;
const EVERY_MS = 1000;
/** Below full scale, reloads follow each other faster: the load between them costs more than the reloads. */
const EVERY_MS_SCALED = 200;
const TORN_EVERY = 5;
/** A gateway that ends sooner seals the rest at its next start; we compare the book after one run. */
const SEALED_WITHIN_MS = 300_000;

export const campaign: Campaign = {
  summary:
    "a router reloaded once a second under 200 clients: no error, and no decision that is not in the book",
  async run({ scale }) {
    const folder = mkdtempSync(join(tmpdir(), "rollbook-reload-"));
    try {
      const reloads = Math.max(TORN_EVERY, Math.round(RELOADS * scale));
      return await reloadUnderLoad(folder, { reloads, everyMs: scale < 1 ? EVERY_MS_SCALED : EVERY_MS });
    } finally {
      rmSync(folder, { recursive: true, force: true });
    }
  },
};

/** Answers to clients: the call, and the model that answered. */
type Answers = Map<string, string>;

async function reloadUnderLoad(folder: string, { reloads, everyMs }: { reloads: number; everyMs: number }) {
  const checkpoint = join(folder, "policy");
  const book = join(folder, "book");
  place(checkpoint, 0);
  const gateway = await openGateway({
    ...{ book, env: {}, local: { models } },
    config: {
      listen: { port: 0 },
      upstreams: { models: { baseUrl: "local:models", retries: 0 } },
      models: { small: { upstream: "models" }, large: { upstream: "models" } },
      router: { checkpoint, allowUngated: true, exploration: 0.2 },
    },
  });
  const answers: Answers = new Map();
  const faults: string[] = [];
  let decisions = 0;
  try {
    const state = { isOver: false };
    const agent = new Agent({ keepAlive: true, maxSockets: CLIENTS });
    const clients = Array.from({ length: CLIENTS }, async () => {
      while (!state.isOver) await ask({ port: gateway.port, agent, answers, faults });
    });
    const { router } = gateway;
    for (let round = 1; round <= reloads; round++) {
      await sleep(everyMs);
      const isTorn = round % TORN_EVERY === 0;
      place(checkpoint, round);
      if (isTorn) writeFileSync(join(checkpoint, "policy.safetensors"), "torn");
      const expected = isTorn ? "kept" : "swapped";
      const reloaded = await router!.reload();
      if (reloaded !== expected) faults.push(`reload ${round} was ${reloaded}, not ${expected}`);
    }
    state.isOver = true;
    await Promise.all(clients);
    agent.destroy();
    decisions = router!.status().counts.decisions;
  } finally {
    await gateway.close(SEALED_WITHIN_MS);
  }
  faults.push(...(await unlogged(book, answers, decisions)));
  for (const fault of faults.slice(0, 20)) console.error(`  ${fault}`);
  console.error(`  ${answers.size} calls of ${CLIENTS} clients, ${reloads} reloads, ${faults.length} faults`);
  return { passed: answers.size, failed: faults.length };
}

function place(folder: string, round: number): void {
  rmSync(folder, { recursive: true, force: true });
  writeCheckpoint(folder, makePolicy(`r-${round}`, { prefers: round % 2 === 0 ? "small" : "large" }));
}

/** Replies with the name of the model. */
const models: LocalUpstream = async (request) => {
  const { model } = (await request.json()) as { model: string };
  return Response.json({
    ...{ id: "c", object: "chat.completion", created: 1, model },
    choices: [{ index: 0, message: { role: "assistant", content: model }, finish_reason: "stop" }],
  });
};

const BODY = JSON.stringify({ model: "auto", messages: [{ role: "user", content: "hello" }] });

function ask(asking: { port: number; agent: Agent; answers: Answers; faults: string[] }): Promise<void> {
  const { port, agent, answers, faults } = asking;
  return new Promise((done) => {
    const failed = (error: Error) => {
      faults.push(`a request failed: ${error.message}`);
      done();
    };
    const headers = { "content-type": "application/json", "content-length": Buffer.byteLength(BODY) };
    const options = { port, agent, headers, method: "POST", path: "/v1/chat/completions" };
    const request = httpRequest(options, (response) => {
      let text = "";
      response.setEncoding("utf8").on("data", (part: string) => {
        text += part;
      });
      response.on("error", failed).on("end", () => {
        if (response.statusCode !== 200) return failed(new Error(`status ${response.statusCode}: ${text}`));
        const call = response.headers["x-rollbook-rollout"] as string;
        answers.set(call, (JSON.parse(text) as { model: string }).model);
        done();
      });
    });
    request.on("error", failed).end(BODY);
  });
}

/** Every answer must be in the book as given, and the book must hold as many decisions as the router made. */
function unlogged(root: string, answers: Answers, decisions: number): Promise<string[]> {
  return useBook(root, { mode: "read" }, async (book) => {
    const logged = new Map<string, string>();
    for (const { digest } of (await book.index()).ofKind(RolloutContent.kind)) {
      const { rolloutId, streams } = await readRecord(book.store, RolloutContent, digest);
      for (const stream of streams)
        if (stream.level === "step")
          for (const { candidates, chosen } of stream.steps) logged.set(rolloutId, candidates[chosen]!.id);
    }
    const faults = [...answers].flatMap(([rollout, model]) =>
      logged.get(rollout) === model
        ? []
        : [`${rollout} was answered by ${model}, the book says ${logged.get(rollout) ?? "nothing"}`],
    );
    if (logged.size !== decisions)
      faults.push(`the router decided ${decisions} times, the book holds ${logged.size} decisions`);
    return faults;
  });
}
