import { mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { beforeEach, describe, expect, it } from "vitest";
import type { Digest } from "../../../base/digest.ts";
import { parseId } from "../../../base/ids.ts";
import type { RolloutEvent } from "../../../contract/index.ts";
import { stepOf } from "../../../policy/index.ts";
import { AppendLog } from "../../../store/log/append-log.ts";
import type { RoutedDecision } from "../upstream/index.ts";
import { Journal, type LogPlace, SOON_MS } from "./journal.ts";
import type { CalledFacts, NewCall } from "./journal-call.ts";
import { JournalReader } from "./journal-reader.ts";

let folder: string;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "rollbook-journal-"));
  return () => rmSync(folder, { recursive: true, force: true });
});

const rollout = parseId("r-1");
const target = { model: "ü" };
const texts = { rollout: Buffer.from(rollout), target: Buffer.from(JSON.stringify(target)) };
const facts = {
  ...{ index: 3, earlier: 2, dialect: "openai-chat", status: 200, outcome: "answered" },
  ...{ startedAtMs: 5, firstByteMs: 1.5, durationMs: 2.5, usage: { promptTokens: 1, completionTokens: 2 } },
  ...{ deliveries: [{ call: 2, delivery: "sent" }] },
} satisfies Omit<NewCall, "decided">;
const call: NewCall = { ...facts, decided: [] };
const parts = {
  ...({ requestForm: "body", replyForm: "sse" } as const),
  request: Buffer.from('{"a":\n1}'),
  reply: [Buffer.from("data: 1\n\n"), Buffer.from("data: 2\n\n")],
  media: [Buffer.from([0, 10, 255]), Buffer.alloc(0)],
};

const list = (id: string) =>
  Object.freeze([{ id, selectable: true, reasons: [], features: { callPrice: 0.1 } }]);
const [CHEAP, DEAR] = [list("cheap"), list("dear")] as const;
const revision = { id: parseId("router-1"), digest: `sha256:${"ab".repeat(32)}` as Digest };

function routed(candidates: typeof CHEAP, turn: number): RoutedDecision {
  const decision = { chosen: 0, probabilities: [1], reason: "only-candidate" as const, confidence: null };
  const context = { fields: { messages: turn } };
  return { decision, context, candidates, revision, turn, call: turn, family: parseId("router") };
}

function reopen() {
  const called: [CalledFacts, LogPlace][] = [];
  const events: [RolloutEvent, LogPlace][] = [];
  const journal = Journal.open(folder, {
    event: (record, place) => events.push([record, place]),
    called: (each, place) => called.push([each, place]),
  });
  return { journal, called, events };
}

describe("a journal", () => {
  it("gives a call back byte for byte, in this run and the next, and forgets it when it is released", async () => {
    const { journal } = reopen();
    const graded = { ...{ name: parseId("good"), value: 1, source: "x\ny", idempotencyKey: "k", atMs: 4 } };
    journal.event(rollout, { kind: "graded", ...graded });
    const place = journal.called(call, texts, parts);
    await journal.flush();
    const whole = { ...facts, rollout, target, request: parts.request, media: parts.media };
    expect(new JournalReader(folder).called(place)).toMatchObject({
      ...whole,
      reply: Buffer.concat(parts.reply),
    });
    await journal.close();

    const next = reopen();
    expect(next.events.map(([{ event }]) => event)).toEqual([{ kind: "graded", ...graded }]);
    const [[known, at]] = next.called as [[CalledFacts, LogPlace]];
    expect(known).toMatchObject({ ...facts, rollout, target });
    expect(new JournalReader(folder).called(at)).toMatchObject({
      ...whole,
      reply: Buffer.concat(parts.reply),
    });
    next.journal.release([at, next.events[0]![1]]);
    await next.journal.close();
    expect(readdirSync(folder)).toEqual([]);
  });

  it("stores the frame of a router once in a segment, and reads every decision back from each entry", async () => {
    const { journal } = reopen();
    const before = journal.called({ ...call, decided: [] }, texts, parts);
    const places = [
      [routed(CHEAP, 0)],
      [routed(CHEAP, 1)],
      [routed(DEAR, 0), routed(CHEAP, 1), routed(DEAR, 1)],
      [routed(CHEAP, 0), routed(DEAR, 0)],
    ].map((decided) => ({ decided, place: journal.called({ ...call, decided }, texts, parts) }));
    await journal.flush();
    const reader = new JournalReader(folder);
    const steps = places.map(({ decided }) => JSON.parse(JSON.stringify(decided.map(stepOf))) as unknown);
    const read = (place: LogPlace) => JSON.parse(JSON.stringify(reader.called(place).steps)) as unknown;
    expect(places.map(({ place }) => read(place))).toEqual(steps);
    const added = places.map(({ place }) => place.bytes - before.bytes);
    expect(added[0]! - added[1]!).toBeGreaterThan(200);
    expect(added[3]!).toBeLessThan(added[0]!);
    await journal.close();

    const next = reopen();
    expect(next.called.slice(1).map(([each]) => JSON.parse(JSON.stringify(each.steps)) as unknown)).toEqual(
      steps,
    );
    // A new process begins a new segment, and a reference never leaves its segment.
    const later = next.journal.called({ ...call, decided: [routed(CHEAP, 0)] }, texts, parts);
    expect(later.segment).toBeGreaterThan(before.segment);
    expect(later.bytes).toBe(places[0]!.place.bytes);
    await next.journal.close();
  });

  it("tells those who can wait, too, before it is closed; one that fails to listen keeps no other waiting", async () => {
    const { journal } = reopen();
    const failure = new Error("not listening");
    const uncaught = new Promise((done) => process.once("uncaughtException", done));
    journal.called(call, texts, parts);
    const heard: string[] = [];
    const lost = () => heard.push("lost");
    const fail = () => {
      throw failure;
    };
    journal.whenDurable({ durable: fail, lost }, SOON_MS);
    journal.whenDurable({ durable: () => heard.push("durable"), lost }, SOON_MS);
    await journal.close();
    expect(heard).toEqual(["durable"]);
    expect(await uncaught).toBe(failure);
  });

  it.each([
    ["a later one", Buffer.from([9, 0, 0])],
    ["the one with a line of JSON", Buffer.from('{"schema":"rollbook.gateway-call.v1"}\n{}')],
  ])("refuses calls of another version: %s", async (_, payload) => {
    const log = AppendLog.open(folder, () => {});
    log.append([payload]);
    await log.close();
    expect(() => reopen()).toThrow("calls of another version");
  });
});
