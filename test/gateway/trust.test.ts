import { describe, expect, it } from "vitest";
import { FINAL_STATE_KIND, MEDIA_KIND } from "../../src/contract/index.ts";
import { verifyBook } from "../../src/keep/verify/index.ts";
import { memoryStore } from "../../src/store/index.ts";
import { TestGateway } from "../support/gateway.ts";
import { json } from "../support/scripted-upstream.ts";

const PICTURE = `data:image/png;base64,${Buffer.alloc(3000, 7).toString("base64")}`;

/** A sealed rollout with a picture, a final state and feedback that came after the closing. */
async function sealedRollout(): Promise<TestGateway> {
  const test = await TestGateway.open();
  test.upstream.play(json({ choices: [{ message: { role: "assistant", content: "a seven" } }] }));
  const { id, apiKey } = await test.openRollout();
  const content = [{ type: "image_url", image_url: { url: PICTURE } }];
  await test.post(
    "/v1/chat/completions",
    { model: "tiny", messages: [{ role: "user", content }] },
    { authorization: `Bearer ${apiKey}` },
  );
  await test.closed(id, { finalState: { board: "won" } });
  const feedback = await test.post("/v1/feedback", {
    ...{ rollout: id, name: "stars", value: 5, idempotencyKey: "k" },
  });
  expect(feedback.body).toEqual({ added: true });
  return test;
}

describe("what a gateway seals with a key", () => {
  it("is signed, every root of it: envelope, events, revisions, late feedback", async () => {
    const test = await sealedRollout();
    const { trust, problems } = await verifyBook(test.book, { trustedKeys: [test.signer.publicKey] });
    expect(problems).toEqual([]);
    for (const { count, trusted } of Object.values(trust.roots)) expect(trusted).toBe(count);
    const kinds = ["feedback", "policy-revision", "rollout-envelope", "rollout-event"];
    expect(Object.keys(trust.roots)).toEqual(
      expect.arrayContaining(kinds.map((kind) => `rollbook.${kind}.v1`)),
    );
  });

  it("is covered by a head of the sealing thread once the gateway has stopped", async () => {
    const test = await sealedRollout();
    await test.gateway.close(10_000);
    const { heads, problems } = await verifyBook(test.book, { trustedKeys: [test.signer.publicKey] });
    expect([problems, heads.latest?.signer]).toEqual([[], test.signer.publicKey]);
  });

  it.each([MEDIA_KIND, FINAL_STATE_KIND])(
    "is missing once it is gone, not outside the book: %s",
    async (kind) => {
      const test = await sealedRollout();
      const kept = memoryStore();
      let gone = 0;
      for await (const item of test.book.scan()) {
        if (item.type !== "blob") continue;
        if (item.kind === kind) gone++;
        else kept.put(item.kind, item.bytes);
      }
      const { problems, external } = await verifyBook(kept);
      expect(gone).toBe(1);
      expect(external).toBe(0);
      expect(problems.map(({ code }) => code)).toContain("missing-blob");
    },
  );
});
