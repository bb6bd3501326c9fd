import { describe, expect, it } from "vitest";
import { d } from "../../../test/support/examples.ts";
import { rejectionOf } from "../../../test/support/refusal-of.ts";
import { makeRollout, stepWire } from "../../../test/support/shelf.ts";
import { parseId } from "../../base/ids.ts";
import { rngFrom } from "../../base/rng.ts";
import { type Call, commitTo, type SealedRollout, type Verdict } from "../../contract/index.ts";
import { isSampled, type ValidateOptions, validateBundle } from "./validate.ts";

type Wire = Record<string, unknown>;

const call = (completionTokens: number): Wire => ({
  dialect: "openai-chat",
  model: "m",
  request: { messages: [{ role: "user", content: "hello" }], parameters: {} },
  response: { messages: [{ role: "assistant", content: "hi" }] },
  usage: { promptTokens: 1, completionTokens },
});

/** A rollout of 2 tokens sampled by one call, from 1 000 to 2 000 ms, with its call log as proof. */
function rollout(name: string, over: Wire = {}, envelope: Wire = {}, tokens = 2): SealedRollout {
  const { stream, ...rest } = over as { stream?: Wire };
  const segments = [{ start: 1, end: 3, call: 0, revision: { id: "policy-r1", digest: d("weights") } }];
  return makeRollout(
    name,
    {
      calls: [call(tokens)],
      envelope: { worker: "w", startedAtMs: 1000, endedAtMs: 2000, ...envelope },
      ...rest,
    },
    // Different choices unless overridden.
    { revision: undefined, segments, ids: [1, 2, 3 + Buffer.from(name)[0]!], ...stream },
  );
}

const options: ValidateOptions = {
  validator: parseId("v1"),
  nowMs: 3000,
  sampleBps: 0,
  nonce: "n",
  has: async () => false,
  calls: async (content) => content.calls.map(() => ({ usage: { completionTokens: 2 } }) as unknown as Call),
};

async function verdictOf(artifact: SealedRollout, over: Partial<ValidateOptions> = {}): Promise<Verdict> {
  const [verdict] = await validateBundle([artifact], { ...options, ...over });
  return verdict!.record;
}

const rejectedFor = (code: string) => ({ disposition: "rejected", weightBps: 0, codes: [code] });

describe("one artifact", () => {
  it("with a call log, sound times and sound counts is accepted, with what was observed", async () => {
    const verdict = await verdictOf(rollout("a"));
    expect(verdict).toMatchObject({ disposition: "accepted", weightBps: 10_000, codes: [] });
    expect(verdict.observations.map(({ name }) => name)).toEqual([
      "execution-proofs",
      "timers",
      "tokens",
      "replay-of",
      "duplicate-of",
      "executed-again",
    ]);
  });

  it("without a proof of execution is rejected; one that is only named is no proof", async () => {
    const bare = rollout("a", {
      calls: [],
      stream: { segments: undefined, revision: { id: "r", digest: d("w") } },
    });
    expect(await verdictOf(bare)).toMatchObject(rejectedFor("execution-proof-missing"));
    const proof = { kind: "execution", digest: d("log"), reference: "log" };
    const named = rollout("a", {}, { proofs: [proof] });
    expect(await verdictOf(named)).toMatchObject(rejectedFor("execution-proof-missing"));
    const has = async (digest: string) => digest === d("log");
    expect(await verdictOf(named, { has })).toMatchObject({ disposition: "accepted" });
  });

  it("with a call log or a commitment that does not fit is rejected, and does not stop the bundle", async () => {
    const artifact = rollout("a");
    const bent = (proofs: Wire[]) => {
      const record = { ...artifact.envelope.record, proofs };
      return { ...artifact, envelope: { ...artifact.envelope, record } } as unknown as SealedRollout;
    };
    const { proofs } = artifact.envelope.record;
    const wrong = { kind: "commitment", digest: d("other"), nonce: "n" };
    for (const bad of [[{ kind: "call-log", digest: d("other") }], [...proofs, wrong]])
      expect(await verdictOf(bent(bad))).toMatchObject(rejectedFor("execution-proof-missing"));
    const right = { kind: "commitment", digest: commitTo(artifact.content.digest, "n"), nonce: "n" };
    expect(await verdictOf(bent([...proofs, right]))).toMatchObject({ disposition: "accepted" });
  });

  it.each([
    ["a call before the start", { callTimes: [{ startedAtMs: 999, durationMs: 5 }] }],
    ["a call past the end", { callTimes: [{ startedAtMs: 1990, durationMs: 12 }] }],
    ["a negative duration", { callTimes: [{ startedAtMs: 1500, durationMs: -1 }] }],
    ["a first byte after the last", { callTimes: [{ startedAtMs: 1500, durationMs: 5, firstByteMs: 6 }] }],
    ["fewer times than calls", { callTimes: [] }],
    ["an end after the submission, past what clocks disagree by", { endedAtMs: 63_001 }],
  ])("with %s is rejected", async (_, envelope) => {
    expect(await verdictOf(rollout("a", {}, envelope))).toMatchObject(
      rejectedFor("timer-integrity-mismatch"),
    );
  });

  it("with sound call times is accepted", async () => {
    const callTimes = [{ startedAtMs: 1500, durationMs: 500, firstByteMs: 3 }];
    expect(await verdictOf(rollout("a", {}, { callTimes }))).toMatchObject({ disposition: "accepted" });
  });

  it("that claims more tokens than the provider counted is rejected", async () => {
    const calls = async () => [{ usage: { promptTokens: 1, completionTokens: 1 } } as unknown as Call];
    expect(await verdictOf(rollout("a"), { calls })).toMatchObject(rejectedFor("token-accounting-mismatch"));
  });
});

describe("executed again", () => {
  const sampled = { sampleBps: 10_000 };
  const same = { sampling: { temperature: 1 } };

  it("is replay-required where it should have been and was not", async () => {
    const waiting = { disposition: "replay-required", codes: [] };
    expect(await verdictOf(rollout("a"), sampled)).toMatchObject(waiting);
    expect(await verdictOf(rollout("a"), { ...sampled, reexecute: async () => undefined })).toMatchObject(
      waiting,
    );
  });

  it("is accepted where final state and sampling agree, rejected where they do not", async () => {
    const artifact = rollout("a", { finalState: d("state") });
    const verdict = (finalState: string, sampling = same.sampling) =>
      verdictOf(artifact, { ...sampled, reexecute: async () => ({ finalState: d(finalState), sampling }) });
    expect(await verdict("state")).toMatchObject({ disposition: "accepted" });
    expect(await verdict("other")).toMatchObject(rejectedFor("final-state-mismatch"));
    expect(await verdict("state", { temperature: 0 })).toMatchObject(
      rejectedFor("execution-strategy-mismatch"),
    );
    expect(await verdictOf(artifact, { ...sampled, reexecute: async () => same })).toMatchObject(
      rejectedFor("final-state-mismatch"),
    );
  });

  it("are as many as asked for, chosen by digest and nonce alone", () => {
    const digests = Array.from({ length: 20_000 }, (_, i) => d(`content ${i}`));
    const drawn = digests.filter((digest) => isSampled(digest, "n", 500));
    // 1 000 expected; five standard deviations are 154.
    expect(Math.abs(drawn.length - 1000)).toBeLessThan(154);
    expect(digests.filter((digest) => isSampled(digest, "n", 0))).toEqual([]);
    expect(digests.filter((digest) => isSampled(digest, "n", 10_000))).toHaveLength(20_000);
    const other = drawn.filter((digest) => isSampled(digest, "another nonce", 500));
    expect(other.length).toBeLessThan(120);
  });

  it("refuses shares that are not basis points", async () => {
    for (const bad of [
      { sampleBps: -1 },
      { sampleBps: 10_001 },
      { sampleBps: 0.5 },
      { duplicateWeightBps: 10_000 },
    ])
      expect((await rejectionOf(validateBundle([], { ...options, ...bad }))).code).toBe("bad-basis-points");
  });
});

describe("a bundle", () => {
  it("gives half weight to a rollout that made the same choices as an earlier one", async () => {
    const [first, second] = [rollout("a1"), rollout("a2", {}, { endedAtMs: 2001 })];
    const verdicts = await validateBundle([second, first], options);
    expect(verdicts.map(({ record }) => [record.subject, record.disposition, record.weightBps])).toEqual([
      [first.content.digest, "accepted", 10_000],
      [second.content.digest, "normalized", 5000],
    ]);
    expect(verdicts[1]!.record.codes).toEqual(["duplicate-detected", "contribution-normalized"]);
  });

  it("takes samples that choose alike for what they are, and the same draw under another name for a repetition", async () => {
    const sample = (name: string, seed: string, endedAtMs: number) =>
      makeRollout(name, {
        ...{ seed, streams: [stepWire()] },
        envelope: { worker: "w", startedAtMs: 1000, endedAtMs },
      });
    const bundle = [sample("a", "7", 2000), sample("b", "8", 2001), sample("c", "7", 2002)];
    const verdicts = await validateBundle(bundle, options);
    expect(verdicts.map(({ record }) => record.codes.includes("duplicate-detected"))).toEqual([
      ...[false, false, true],
    ]);
  });

  it("rejects another's name and another's proof of execution, in the bundle and from before", async () => {
    const proof = { proofs: [{ kind: "execution", digest: d("log"), reference: "log" }] };
    const has = async () => true;
    const original = rollout("a", {}, proof);
    const copiedProof = rollout("b", {}, { ...proof, endedAtMs: 2001 });
    const takenName = rollout("a", { seed: "8" }, { endedAtMs: 2001 });
    const dispositions = async (artifacts: SealedRollout[], earlier: SealedRollout[]) =>
      Object.fromEntries(
        (await validateBundle(artifacts, { ...options, has, earlier })).map(({ record }) => [
          record.subject,
          record.codes.join(),
        ]),
      );
    const replays = {
      [copiedProof.content.digest]: "replayed-artifact-detected",
      [takenName.content.digest]: "replayed-artifact-detected,duplicate-detected",
    };
    expect(await dispositions([takenName, original, copiedProof], [])).toEqual({
      [original.content.digest]: "",
      ...replays,
    });
    expect(await dispositions([takenName, copiedProof], [original])).toEqual(replays);
  });

  it("judges the same content once, and does not take it for a copy of itself", async () => {
    const [artifact, again] = [rollout("a"), rollout("a", {}, { worker: "w2", endedAtMs: 2002 })];
    expect(again.content.digest).toBe(artifact.content.digest);
    const verdicts = await validateBundle([again, artifact], { ...options, earlier: [artifact] });
    expect(verdicts.map(({ record }) => record.disposition)).toEqual(["accepted"]);
  });

  it("in any order gives the same verdicts", async () => {
    const bundle = ["a1", "a2", "b1", "b2", "c"].map((name) => rollout(name));
    const digests = new Set<string>();
    for (let i = 0; i < 10; i++) {
      const verdicts = await validateBundle(rngFrom(i).shuffle([...bundle]), { ...options, sampleBps: 4000 });
      digests.add(verdicts.map(({ digest }) => digest).join());
    }
    expect(digests.size).toBe(1);
  });
});
