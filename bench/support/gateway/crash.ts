/** Kills gateways with SIGKILL at random moments under load and checks the book afterwards.
 *  In: number of kills, seed. Out: number of kills that left the book as promised. Every reply that a client received
 *  to its last byte is recorded exactly once, in an open or sealed rollout; the book verifies. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { type Digest, type Rng, rngFrom, systemClock } from "../../../src/base/index.ts";
import { createKey, keyringAt } from "../../../src/book/open/keyring.ts";
import { Journal, type LogPlace } from "../../../src/collect/gateway/journal/journal.ts";
import type { CalledFacts } from "../../../src/collect/gateway/journal/journal-call.ts";
import type { EventOf } from "../../../src/collect/gateway/journal/journal-event.ts";
import { JournalReader } from "../../../src/collect/gateway/journal/journal-reader.ts";
import {
  Call,
  openRecord,
  RolloutContent,
  RolloutEnvelope,
  RolloutEvent,
} from "../../../src/contract/index.ts";
import { verifyBook } from "../../../src/keep/verify/index.ts";
import { type Book, openBook } from "../../../src/store/index.ts";
import { MAIN, requireBuild } from "../build.ts";
import { openEcho } from "./echo-upstream.ts";

export interface GatewayCrashOptions {
  readonly kills: number;
  readonly seed: bigint;
  readonly clients?: number;
  readonly onFailure?: (what: string) => void;
}

/** Kills per book, so that recovery meets the remains of several crashes. */
const KILLS_PER_BOOK = 10;

export async function crashGateway(
  options: GatewayCrashOptions,
): Promise<{ passed: number; failed: number }> {
  const { kills, seed, clients = 8, onFailure = () => undefined } = options;
  const rng = rngFrom(seed);
  const scratch = mkdtempSync(join(tmpdir(), "rollbook-gateway-crash-"));
  requireBuild();
  const upstream = await openEcho();
  createKey(keyringAt(join(scratch, "home")));
  const tally = { passed: 0, failed: 0 };
  try {
    for (let kill = 0; kill < kills; ) {
      const book = join(scratch, `book-${kill}`);
      const config = writeConfig(scratch, upstream.url);
      const delivered = new Map<string, string>();
      let number = 0;
      for (let i = 0; i < KILLS_PER_BOOK && kill < kills; i++, kill++) {
        const run = { config, book, rng, clients, delivered };
        const fault = await killOne({ ...run, nextNumber: () => number++ });
        const faults = [...(fault === undefined ? [] : [fault]), ...(await checkBook(book, delivered))];
        for (const each of faults) onFailure(`kill ${kill}: ${each}`);
        tally[faults.length === 0 ? "passed" : "failed"]++;
      }
      // The last start recovers all rollouts and seals them.
      for (const each of await settle({ config, book, delivered })) {
        onFailure(each);
        tally.failed++;
      }
    }
  } finally {
    upstream.close();
    rmSync(scratch, { recursive: true, force: true });
  }
  return tally;
}

interface Run {
  readonly config: string;
  readonly book: string;
  readonly delivered: Map<string, string>;
}

/** Starts a gateway, puts load on it, kills it. Records delivered replies: word of the reply → rollout. */
async function killOne(
  run: Run & { rng: Rng; clients: number; nextNumber: () => number },
): Promise<string | undefined> {
  const gateway = await startGateway(run);
  if (typeof gateway === "string") return gateway;
  let stopped = false;
  let onFirst = () => {};
  const first = new Promise<void>((done) => {
    onFirst = done;
  });
  const work = Array.from({ length: run.clients }, async (_, client) => {
    const rollout = await openRollout(gateway.url);
    while (!stopped) {
      const word = `word-${run.nextNumber()}`;
      // A third without a rollout, some streamed.
      const name = client % 3 === 0 ? undefined : rollout;
      if (await ask({ url: gateway.url, rollout: name, word, stream: client % 2 === 0 }))
        run.delivered.set(word, name ?? "");
      onFirst();
    }
  });
  // From now on a client may fail at any moment, because of the kill.
  const ended = Promise.allSettled(work);
  // One in four gateways is killed during its start. The others are killed after their first answer, on any machine.
  if (run.rng.below(4) > 0) await Promise.race([first, sleep(10_000)]);
  await sleep(run.rng.below(200));
  gateway.child.kill("SIGKILL");
  stopped = true;
  await once(gateway.child, "close");
  await ended;
  return undefined;
}

async function startGateway({ config, book }: Run): Promise<{ url: string; child: ChildProcess } | string> {
  const child = spawn(process.execPath, [MAIN, "gateway", "--config", config, "--book", book], {
    stdio: ["ignore", "pipe", "pipe"],
    env: { ...process.env, ROLLBOOK_HOME: join(dirname(config), "home") },
  });
  let errors = "";
  child.stderr!.setEncoding("utf8").on("data", (text: string) => {
    errors += text;
  });
  const line = await Promise.race([
    once(child.stdout!, "data").then(([data]) => String(data).trim()),
    once(child, "close").then(() => undefined),
  ]);
  return line === undefined ? `the gateway did not start: ${errors}` : { url: line, child };
}

async function openRollout(url: string): Promise<string> {
  const response = await fetch(`${url}/v1/rollouts`, { method: "POST", body: "{}" });
  return ((await response.json()) as { id: string }).id;
}

/** True if the reply arrived to its last byte. */
async function ask(options: {
  url: string;
  rollout: string | undefined;
  word: string;
  stream: boolean;
}): Promise<boolean> {
  const { url, rollout, word, stream } = options;
  try {
    const response = await fetch(
      `${url}${rollout === undefined ? "" : `/r/${rollout}`}/v1/chat/completions`,
      {
        method: "POST",
        body: JSON.stringify({ model: "m", messages: [{ role: "user", content: word }], stream }),
      },
    );
    const text = await response.text();
    return response.status === 200 && (stream ? text.includes("[DONE]") : text.endsWith("}"));
  } catch {
    return false; // The gateway was killed before the last byte.
  }
}

/** Every delivered word must be in exactly one call:
 *  of an open rollout in the journal, or of a sealed one in the book. */
async function checkBook(root: string, delivered: ReadonlyMap<string, string>): Promise<string[]> {
  const book = await openBook(root, { clock: systemClock });
  try {
    const faults: string[] = [];
    const report = await verifyBook(book);
    for (const { code, message } of report.problems) faults.push(`${code}: ${message}`);
    // A rollout that is being sealed is in both: the call numbers identify duplicates.
    const words = new Map<string, Set<string>>();
    const note = (text: string, rollout: string, index: number) => {
      const word = /word-\d+/.exec(text)?.[0];
      if (word === undefined) return;
      words.set(word, (words.get(word) ?? new Set()).add(JSON.stringify([rollout, index])));
    };
    await readSealedCalls(book, note);
    await readJournaledCalls(root, note);
    for (const [word, rollout] of delivered) {
      const found = [...(words.get(word) ?? [])].map((call) => JSON.parse(call) as [string, number]);
      if (found.length !== 1) faults.push(`${word} was delivered and is recorded ${found.length} times`);
      else if (rollout !== "" && found[0]![0] !== rollout)
        faults.push(`${word} is recorded in ${found[0]![0]}, not ${rollout}`);
    }
    return faults;
  } finally {
    await book.close();
  }
}

type Note = (reply: string, rollout: string, index: number) => void;

async function readSealedCalls(book: Book, note: Note): Promise<void> {
  const journaled: [string, EventOf<"called">][] = [];
  const messages = new Map<Digest, string>();
  const calls = new Map<Digest, Call>();
  for await (const item of book.scan()) {
    if (item.type !== "blob") continue;
    if (item.kind === "rollbook.message.v1") messages.set(item.digest, Buffer.from(item.bytes).toString());
    if (item.kind === Call.kind) calls.set(item.digest, openRecord(Call, item.bytes));
    if (item.kind !== RolloutEvent.kind) continue;
    const { rollout, event } = openRecord(RolloutEvent, item.bytes);
    if (event.kind === "called") journaled.push([rollout, event]);
  }
  for (const [rollout, { call, index }] of journaled)
    note(messages.get(calls.get(call)!.response.messages[0]!) ?? "", rollout, index);
}

async function readJournaledCalls(root: string, note: Note): Promise<void> {
  const found: [CalledFacts, LogPlace][] = [];
  const visitor = {
    event: () => {},
    called: (facts: CalledFacts, place: LogPlace) => found.push([facts, place]),
  };
  const directory = join(root, "journal", "gateway");
  const journal = Journal.open(directory, visitor);
  const reader = new JournalReader(directory);
  for (const [{ rollout, index }, place] of found)
    note(reader.called(place).reply.toString(), rollout, index);
  reader.close();
  await journal.close();
}

/** Starts again, closes every rollout, and checks that every delivered word is in exactly one sealed artifact. */
async function settle(run: Run): Promise<string[]> {
  const gateway = await startGateway(run);
  if (typeof gateway === "string") return [gateway];
  for (const rollout of new Set(run.delivered.values()))
    if (rollout !== "") {
      const response = await fetch(`${gateway.url}/v1/rollouts/${rollout}/close`, {
        method: "POST",
        body: "{}",
      });
      if (response.status !== 200) return [`closing ${rollout}: ${response.status} ${await response.text()}`];
    }
  gateway.child.kill("SIGTERM");
  await once(gateway.child, "close");
  const book = await openBook(run.book, { clock: systemClock });
  try {
    const sealed = new Map<string, number>();
    const ids = new Map<string, number>();
    for await (const item of book.scan()) {
      if (item.type !== "blob" || item.kind !== RolloutEnvelope.kind) continue;
      const { content } = openRecord(RolloutEnvelope, item.bytes);
      const { rolloutId, calls } = openRecord(RolloutContent, (await book.get(content))!.bytes);
      ids.set(rolloutId, (ids.get(rolloutId) ?? 0) + 1);
      for (const digest of calls) {
        const call = openRecord(Call, (await book.get(digest))!.bytes);
        const [reply] = call.response.messages;
        const text = reply === undefined ? "" : Buffer.from((await book.get(reply))!.bytes).toString();
        const word = /word-\d+/.exec(text)?.[0];
        if (word !== undefined) sealed.set(word, (sealed.get(word) ?? 0) + 1);
      }
    }
    const faults: string[] = run.delivered.size === 0 ? ["nothing was delivered: nothing was tried"] : [];
    const { trust } = await verifyBook(book);
    if (trust.signed !== trust.artifacts)
      faults.push(`${trust.signed} of ${trust.artifacts} artifacts are signed`);
    for (const [id, times] of ids) if (times !== 1) faults.push(`rollout ${id} is sealed ${times} times`);
    for (const word of run.delivered.keys())
      if (sealed.get(word) !== 1) faults.push(`${word} is sealed ${sealed.get(word) ?? 0} times`);
    return faults;
  } finally {
    await book.close();
  }
}

function writeConfig(scratch: string, url: string): string {
  const path = join(scratch, "gateway.yaml");
  writeFileSync(path, `listen: { port: 0 }\nupstreams: { up: { baseUrl: "${url}" } }\ndefaultUpstream: up\n`);
  return path;
}
