import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { anyJson, anyRolloutWire } from "../../../test/support/arbitraries.ts";
import { refusalOf, rejectionOf } from "../../../test/support/refusal-of.ts";
import { draftWire, makeRollout, Shelf } from "../../../test/support/shelf.ts";
import { canonicalize } from "../../base/canonical-json.ts";
import type { Digest } from "../../base/digest.ts";
import { parseJson } from "../../base/parse-json.ts";
import { parseRolloutDraft, type SealedRollout, sealRollout } from "./rollout-draft.ts";
import { inlineRollout, readTokenColumns } from "./rollout-exchange.ts";
import type { TokenStream } from "./stream.ts";

function reader(sealed: SealedRollout) {
  const blobs = new Map(sealed.blobs.map((blob) => [blob.digest, blob]));
  return async (digest: Digest) => blobs.get(digest);
}

const digestsOf = ({ content, envelope }: SealedRollout) => ({
  content: content.digest,
  envelope: envelope.digest,
});

describe("exchange form", () => {
  test("sealed → inline JSON text → sealed gives the same digests, for any valid rollout", async () => {
    await fc.assert(
      fc.asyncProperty(anyRolloutWire, async (wire) => {
        const sealed = sealRollout(parseRolloutDraft(wire));
        const inline = await inlineRollout(reader(sealed), digestsOf(sealed));
        const again = sealRollout(parseRolloutDraft(parseJson(canonicalize(inline))));
        expect(digestsOf(again)).toEqual(digestsOf(sealed));
        expect(again.blobs.map((blob) => blob.digest)).toEqual(sealed.blobs.map((blob) => blob.digest));
      }),
      { numRuns: 200 },
    );
  });

  test("a final state of any JSON goes along, and another than the digest names is refused", async () => {
    await fc.assert(
      fc.asyncProperty(anyRolloutWire, anyJson, async ({ finalState: _, ...wire }, state) => {
        const sealed = sealRollout(parseRolloutDraft({ ...wire, finalStateValue: state }));
        const inline = await inlineRollout(reader(sealed), digestsOf(sealed));
        const again = sealRollout(parseRolloutDraft(parseJson(canonicalize(inline))));
        expect(digestsOf(again)).toEqual(digestsOf(sealed));
        const blob = again.blobs.find(({ digest }) => digest === sealed.content.record.finalState)!;
        expect(Buffer.from(blob.bytes).toString()).toBe(canonicalize(state));
        const other = { ...inline, finalStateValue: [state] };
        expect(refusalOf(() => sealRollout(parseRolloutDraft(other))).code).toBe("digest-mismatch");
      }),
      { numRuns: 50 },
    );
  });

  test("the inline form carries its digests, so an edited copy is refused", async () => {
    const sealed = makeRollout("r");
    const inline = await inlineRollout(reader(sealed), digestsOf(sealed));
    const edit = (over: object) => refusalOf(() => sealRollout(parseRolloutDraft({ ...inline, ...over })));
    expect(edit({ seed: "8" })).toMatchObject({
      code: "digest-mismatch",
      fields: { field: "contentDigest" },
    });
    const envelope = { ...(inline.envelope as object), worker: "worker-z" };
    expect(edit({ envelope })).toMatchObject({
      code: "digest-mismatch",
      fields: { field: "envelopeDigest" },
    });
  });

  test("worker, times and attempt change the envelope and leave the content as it was", () => {
    const here = makeRollout("r");
    const there = makeRollout("r", {
      envelope: { worker: "worker-b", startedAtMs: 5, endedAtMs: 9, attempt: 3 },
    });
    expect(there.content.digest).toBe(here.content.digest);
    expect(there.envelope.digest).not.toBe(here.envelope.digest);
  });

  test("a negative zero is sealed as 0, which is what its JSON says", async () => {
    const sealed = makeRollout("r", {}, { rewards: [-0, -0, 1] });
    const draft = parseRolloutDraft(draftWire("r", {}, { rewards: [0, 0, 1] }));
    const typed = {
      ...draft,
      streams: draft.streams.map((each) => ({ ...each, rewards: Float32Array.of(-0, -0, 1) })),
    };
    expect(sealRollout(typed as typeof draft).content.digest).toBe(sealed.content.digest);
    const inline = await inlineRollout(reader(sealed), digestsOf(sealed));
    const text = canonicalize(inline);
    expect(sealRollout(parseRolloutDraft(parseJson(text))).content.digest).toBe(sealed.content.digest);
  });

  test("a message resent with every call is one blob", () => {
    const call = (text: string) => ({
      dialect: "openai-chat",
      model: "m",
      request: { messages: [{ role: "user", content: "hello" }], parameters: {} },
      response: { messages: [{ role: "assistant", content: text }] },
    });
    const { blobs } = makeRollout("r", { calls: [call("a"), call("b")] });
    const messages = blobs.filter((blob) => blob.kind === "rollbook.message.v1");
    expect(new Set(messages.map((blob) => blob.digest)).size).toBe(3);
  });

  test("blobs come in writing order: what is referred to first, content, envelope last", () => {
    const { blobs, content, envelope } = makeRollout("r");
    expect(blobs.slice(-2).map((blob) => blob.digest)).toEqual([content.digest, envelope.digest]);
    expect(new Set(blobs.map((blob) => blob.digest)).size).toBe(blobs.length);
  });

  test("a column that is gone, or of another length than claimed, is refused by name", async () => {
    const sealed = makeRollout("r");
    const item = sealed.content.record.streams[0] as TokenStream;
    const missing = await rejectionOf(readTokenColumns(async () => undefined, item));
    expect(missing).toMatchObject({ code: "missing-blob", fields: { what: "column ids" } });
    const short = async () => ({ kind: "rollbook.column.u32", bytes: new Uint8Array(4) });
    expect((await rejectionOf(readTokenColumns(short, item))).fields).toMatchObject({
      expected: 3,
      actual: 1,
    });
  });

  test("typed arrays and plain arrays seal alike", () => {
    const wire = parseRolloutDraft(draftWire("r"));
    const [stream] = wire.streams;
    if (stream?.level !== "token") throw new Error("the example has a token stream");
    const typed = {
      ...stream,
      ids: Uint32Array.from(stream.ids),
      mask: Uint8Array.from(stream.mask!),
      logprobs: Float32Array.from(stream.logprobs),
      rewards: Float64Array.from(stream.rewards!),
    };
    expect(sealRollout({ ...wire, streams: [typed] }).content.digest).toBe(sealRollout(wire).content.digest);
  });

  test("an integer that does not fit its column is refused", () => {
    for (const ids of [
      [1, 2, -1],
      [1, 2, 2 ** 32],
      [1, 2, 0.5],
    ]) {
      expect(refusalOf(() => makeRollout("r", {}, { ids })).fields).toMatchObject({
        field: "streams[0].ids",
        index: 2,
      });
    }
  });

  test("a real beyond f32 is refused as non-finite", () => {
    expect(refusalOf(() => makeRollout("r", {}, { rewards: [0, 1e39, 0] })).code).toBe("non-finite-number");
  });

  test("a shelf reads back what it was given", async () => {
    const shelf = new Shelf();
    const sealed = shelf.rollout("r");
    const inline = await inlineRollout(shelf.read, digestsOf(sealed));
    expect(inline).toMatchObject({ rolloutId: "r", contentDigest: sealed.content.digest, seed: "7" });
  });
});
