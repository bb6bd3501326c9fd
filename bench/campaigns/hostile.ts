/** Hostile requests and replies through a gateway, in every dialect, whole and streamed. Every rollout must be closed,
 *  sealed and verified. Requests and replies of a gigabyte are refused or cut, in bounded time and memory. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { systemClock } from "../../src/base/clock.ts";
import { type Rng, rngFrom } from "../../src/base/rng.ts";
import { checkGatewayConfig, type LocalUpstream, openGateway } from "../../src/collect/gateway/index.ts";
import { openRecord, RolloutContent } from "../../src/contract/index.ts";
import { verifyBook } from "../../src/keep/verify/index.ts";
import { openBook } from "../../src/store/index.ts";
import { HOSTILE_PATHS, type HostileDialect, HostileText } from "../support/gateway/hostile.ts";
import { drawTrial, runSizeTrials } from "../support/gateway/hostile-sizes.ts";
import type { Campaign } from "../support/programs.ts";

const TRIALS = 10_000;
/** Number of requests and replies of a gigabyte; at least one of each. */
const SIZE_TRIALS = 100;
const AT_ONCE = 16;
const DIALECTS = Object.keys(HOSTILE_PATHS) as HostileDialect[];

export const campaign: Campaign = {
  summary:
    "10 000 hostile requests and replies in every dialect are sealed and verify; 100 of a gigabyte are refused or cut",
  async run({ scale, seed }) {
    const root = mkdtempSync(join(tmpdir(), "rollbook-hostile-"));
    const trials = Math.ceil(TRIALS * scale);
    try {
      const closed = await callAll(root, { trials, rng: rngFrom(seed) });
      const { sealed, problems } = await look(root);
      for (const each of problems) console.error(`  ${each}`);
      const lost = closed.filter((id) => !sealed.has(id));
      for (const id of lost) console.error(`  closed, but not in the book: ${id}`);
      const large = await tryLarge(root, { trials: Math.ceil(SIZE_TRIALS * scale), rng: rngFrom(seed) });
      const failed = trials - closed.length + lost.length + problems.length + large.failed;
      return { passed: trials + large.trials - failed, failed };
    } finally {
      rmSync(root, { recursive: true, force: true });
    }
  },
};

async function tryLarge(root: string, { trials, rng }: { trials: number; rng: Rng }) {
  const own = rng.split("sizes");
  const drawn = Array.from({ length: trials }, () => drawTrial(own));
  const both = (["request", "reply"] as const).filter((what) => !drawn.some((each) => each.what === what));
  const all = [...drawn, ...both.map((what) => ({ ...drawTrial(own), what }))];
  const { faults, peakBytes } = await runSizeTrials(root, all);
  for (const each of faults) console.error(`  ${each}`);
  console.error(`  ${all.length} bodies of 1 GB: the gateway held at most ${Math.round(peakBytes / 1e6)} MB`);
  return { trials: all.length, failed: faults.length };
}

/** Names of the rollouts that were sealed with a call. A rollout whose call was refused is closed too, but has no
 *  artifact. Its trial is repeated with the next texts. */
async function callAll(root: string, { trials, rng }: { trials: number; rng: Rng }): Promise<string[]> {
  const replies = new Map<string, Response>();
  const local: LocalUpstream = (request) => replies.get(request.headers.get("x-trial")!)!;
  const book = await openBook(root, { clock: systemClock });
  const log: string[] = [];
  const gateway = await openGateway({
    ...{ book, clock: systemClock, rng: rng.split("gateway"), env: {}, local: { hostile: local } },
    config: checkGatewayConfig({
      listen: { port: 0 },
      upstreams: { main: { baseUrl: "local:hostile", retries: 0, breaker: { failures: 1_000_000 } } },
      models: { tiny: { upstream: "main", logprobKind: "model", price: { prompt: 1, completion: 2 } } },
    }),
    newId: () => `r-${rng.below(2 ** 48)}`,
    log: (line) => log.push(line),
  });
  const post = async (path: string, body: string, headers: Record<string, string> = {}) => {
    const response = await fetch(gateway.url + path, { method: "POST", body, headers });
    return { status: response.status, text: await response.text().catch(() => "") };
  };
  const one = async (trial: number): Promise<string | undefined> => {
    for (let turn = 0; ; turn++) {
      const id = `t-${trial}-${turn}`;
      const own = rng.split(id);
      const text = new HostileText(own.split("text"));
      const dialect = DIALECTS[own.below(DIALECTS.length)]!;
      const isStream = own.float() < 0.5;
      await post("/v1/rollouts", JSON.stringify({ id }));
      for (let call = 0; call <= own.below(3); call++) {
        const body = isStream ? streamOf(text.stream(dialect)) : new Uint8Array(text.reply(dialect));
        const type = isStream ? "text/event-stream" : "application/json";
        const status = own.float() < 0.9 ? 200 : 400;
        replies.set(`${id}.${call}`, new Response(body, { status, headers: { "content-type": type } }));
        const headers = { "x-rollbook-rollout": id, "x-trial": `${id}.${call}` };
        await post(HOSTILE_PATHS[dialect], text.request(dialect, isStream), headers).catch(() => {});
      }
      const { status, text: said } = await post(
        `/v1/rollouts/${id}/close`,
        '{"scores":[{"name":"s","value":1}]}',
      );
      if (status !== 200) {
        console.error(`  ${id} (${dialect}${isStream ? ", stream" : ""}): close answered ${status} ${said}`);
        return undefined;
      }
      if ((JSON.parse(said) as { calls: number }).calls > 0) return id;
    }
  };
  const closed: string[] = [];
  let next = 0;
  const work = async () => {
    while (next < trials) {
      const id = await one(next++);
      if (id !== undefined) closed.push(id);
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, work));
  await gateway.close();
  await book.close();
  for (const line of log.filter((each) => each.includes("could not be sealed"))) console.error(`  ${line}`);
  return closed;
}

function streamOf(chunks: readonly Buffer[]): ReadableStream<Uint8Array> {
  let at = 0;
  return new ReadableStream({
    pull(controller) {
      if (at < chunks.length) controller.enqueue(new Uint8Array(chunks[at++]!));
      else controller.close();
    },
  });
}

async function look(root: string): Promise<{ sealed: Set<string>; problems: string[] }> {
  const book = await openBook(root, { clock: systemClock, mode: "read" });
  const sealed = new Set<string>();
  for await (const item of book.scan())
    if (item.type === "blob" && item.kind === RolloutContent.kind)
      sealed.add(openRecord(RolloutContent, item.bytes).rolloutId);
  const { problems } = await verifyBook(book);
  await book.close();
  return { sealed, problems: problems.map(({ where, message }) => `${where}: ${message}`) };
}
