import { describe, expect, it } from "vitest";
import { refusalOf, rejectionOf } from "../../../../test/support/refusal-of.ts";
import {
  assignment,
  openWorkerServer,
  rolloutFor,
  uploadOf,
} from "../../../../test/support/worker-server.ts";
import { columnTag } from "../../../base/arrays.ts";
import { digestBytes, digestJson } from "../../../base/digest.ts";
import { parseId } from "../../../base/ids.ts";
import {
  Attestation,
  Feedback,
  newKeyPem,
  openRecord,
  Receipt,
  seal,
  signerFromPem,
} from "../../../contract/index.ts";
import type { Claim } from "../../queue/queue.ts";
import { openSqliteQueue } from "../../queue/sqlite-queue.ts";
import { laneFor, workItems } from "../work/work-item.ts";
import { makeGroupSigner } from "./group-signer.ts";
import { INLINE_LIMIT_BYTES, type Upload } from "./upload.ts";
import { makeRegistration } from "./worker-registration.ts";

const codeOf = async (promise: Promise<unknown>) => (await rejectionOf(promise)).code;

/** A worker that holds a claim and has a valid upload ready. */
async function withClaim() {
  const at = await openWorkerServer();
  const worker = at.join("w1");
  const [claim] = (await at.server.claim(worker.session, { limit: 1 })) as [Claim];
  const rollout = rolloutFor(claim);
  const upload = uploadOf(claim, rollout, worker.signer);
  const send = (change: Partial<Upload> = {}) => at.server.upload(worker.session, { ...upload, ...change });
  return { ...at, worker, claim, rollout, upload, send };
}

describe("the whole way", () => {
  it("claim, heartbeat, upload: the artifact, its signature and the receipt are in the book", async () => {
    const { server, worker, queue, book, claim, rollout, send } = await withClaim();
    expect(claim).toMatchObject({ worker: "w1", attempt: 1, payload: { assignment: assignment.digest } });
    expect(await server.heartbeat(worker.session, [claim])).toEqual([]);
    const receipt = await send();
    expect(receipt.record).toMatchObject({
      outcome: "stored",
      subject: rollout.content.digest,
      worker: "w1",
      claim: `${claim.item}:${claim.token}`,
    });
    for (const { digest } of rollout.blobs) expect(await book.has(digest)).toBe(true);
    expect(openRecord(Receipt, (await book.get(receipt.digest))!.bytes)).toEqual(receipt.record);
    expect(await queue.state(claim.item)).toMatchObject({ state: "done", result: rollout.envelope.digest });
  });

  it("large artifacts travel by reference: in the book first, then named", async () => {
    const { book, rollout, send } = await withClaim();
    expect(await codeOf(send({ blobs: [] }))).toBe("missing-blob");
    for (const { kind, bytes } of rollout.blobs) book.put(kind, bytes);
    expect((await send({ blobs: [] })).record.outcome).toBe("stored");
  });

  it("rollouts that are uploaded together by reference share one signature, which must name nothing the book lacks", async () => {
    const { server, book, join } = await openWorkerServer();
    const worker = join("w1");
    const claims = await server.claim(worker.session, { limit: 3 });
    const rollouts = claims.map((claim) => rolloutFor(claim));
    for (const { blobs } of rollouts) for (const { kind, bytes } of blobs) book.put(kind, bytes);
    const signTogether = makeGroupSigner(worker.signer);
    const send = async (attestation: Promise<Uint8Array>, i: number) =>
      server.upload(worker.session, {
        ...uploadOf(claims[i]!, rollouts[i]!, worker.signer),
        ...{ attestation: await attestation, blobs: [] },
      });
    const lost = digestJson("test.v1", "lost");
    const early = [signTogether(rollouts[0]!.envelope.digest), signTogether(lost)];
    expect(await codeOf(send(early[0]!, 0))).toBe("missing-blob");
    const signed = rollouts.map(({ envelope }) => signTogether(envelope.digest));
    expect(new Set(await Promise.all(signed)).size).toBe(1);
    const receipts = await Promise.all(signed.map(send));
    expect(receipts.map(({ record }) => record.outcome)).toEqual(["stored", "stored", "stored"]);
    const attestations = [];
    for await (const blob of book.scan())
      if (blob.type === "blob" && blob.kind === Attestation.kind)
        attestations.push(openRecord(Attestation, blob.bytes).subjects);
    expect(attestations).toEqual([rollouts.map(({ envelope }) => envelope.digest).sort()]);
  });

  it("of what this process sealed the claim is checked, and nothing that it names is read again", async () => {
    const here = new Set<string>();
    const { server, book, join } = await openWorkerServer({
      sealedHere: (envelope) => here.delete(envelope),
    });
    const worker = join("w1");
    const [one, two] = (await server.claim(worker.session, { limit: 2 })) as [Claim, Claim];
    const [mine, other] = [rolloutFor(one), rolloutFor(two)];
    const { content, envelope } = mine;
    // The other blobs are missing. An upload that this process sealed still passes, so the server does not look for
    // them.
    for (const { kind, bytes } of [content, envelope, other.content, other.envelope]) book.put(kind, bytes);
    const upload = { ...uploadOf(one, mine, worker.signer), blobs: [] };
    const unknown = { ...uploadOf(two, other, worker.signer), blobs: [] };
    here.add(other.envelope.digest);
    expect(await codeOf(server.upload(worker.session, { ...unknown, claim: upload.claim }))).toBe(
      "not-bound",
    );
    expect(await codeOf(server.upload(worker.session, unknown))).toBe("missing-blob");
    expect(await codeOf(server.upload(worker.session, upload))).toBe("missing-blob");
    here.add(envelope.digest);
    expect((await server.upload(worker.session, upload)).record.outcome).toBe("stored");
  });

  it("what admission says is in the receipt, and its records are in the book", async () => {
    const note = assignment;
    const at = await openWorkerServer({
      admit: ({ content, nowMs }) => ({
        outcome: "quarantined",
        signals: [],
        message: `${content.rolloutId} at ${nowMs}`,
        records: [note],
      }),
    });
    const worker = at.join("w1");
    const [claim] = (await at.server.claim(worker.session, { limit: 1 })) as [Claim];
    const receipt = await at.server.upload(worker.session, uploadOf(claim, rolloutFor(claim), worker.signer));
    expect(receipt.record).toMatchObject({ outcome: "quarantined", message: `${claim.item} at 1000000` });
    expect(await at.book.has(note.digest)).toBe(true);
  });

  it("a worker server with a key signs its receipts", async () => {
    const signer = signerFromPem(newKeyPem());
    const at = await openWorkerServer({ signer });
    const worker = at.join("w1");
    const [claim] = (await at.server.claim(worker.session, { limit: 1 })) as [Claim];
    const receipt = await at.server.upload(worker.session, uploadOf(claim, rolloutFor(claim), worker.signer));
    const subjects: string[] = [];
    for await (const blob of at.book.scan())
      if (blob.type === "blob" && blob.kind === Attestation.kind) {
        const attestation = openRecord(Attestation, blob.bytes);
        if (attestation.signer === signer.publicKey) subjects.push(...attestation.subjects);
      }
    expect(subjects).toEqual([receipt.digest]);
  });
});

describe("registration", () => {
  it("needs the key it names, a trusted one, and a fresh signature", async () => {
    const { clock, server } = await openWorkerServer({ trusts: (key) => key !== stranger.publicKey });
    const [signer, other] = [signerFromPem(newKeyPem()), signerFromPem(newKeyPem())];
    const good = makeRegistration(signer, "w1", clock.nowMs());
    const refusal = (registration: typeof good) => refusalOf(() => server.register(registration)).code;
    expect(refusal({ ...good, publicKey: other.publicKey })).toBe("bad-signature");
    expect(refusal({ ...good, worker: "w2" })).toBe("bad-signature");
    expect(refusal({ ...good, atMs: good.atMs + 1 })).toBe("bad-signature");
    expect(refusal(makeRegistration(stranger, "w1", clock.nowMs()))).toBe("untrusted-key");
    expect(refusal(makeRegistration(signer, "w1", clock.nowMs() + 60_001))).toBe("stale-registration");
    clock.advance(60_001);
    expect(refusal(good)).toBe("stale-registration");
    expect(refusal(makeRegistration(signer, "a/b", clock.nowMs()))).toBe("bad-id");
  });

  it("a namesake with another key gets nothing of a worker's claims, and its own name ends the old session", async () => {
    const { server, join, worker, claim, rollout } = await withClaim();
    const namesake = join("w1");
    expect(await codeOf(server.heartbeat(namesake.session, [claim]))).toBe("wrong-worker");
    expect(await codeOf(server.upload(namesake.session, uploadOf(claim, rollout, namesake.signer)))).toBe(
      "wrong-worker",
    );
    const again = join("w1", worker.signer);
    expect(await codeOf(server.heartbeat(worker.session, []))).toBe("unknown-worker");
    expect(await server.heartbeat(again.session, [claim])).toEqual([]);
  });
});

const stranger = signerFromPem(newKeyPem());

describe("claims are checked in order", () => {
  it("unknown worker, stale heartbeat, unknown assignment, wrong worker, already claimed", async () => {
    const { clock, server, queue, join, claim } = await withClaim();
    await queue.enqueue([{ id: "reserved", payload: {}, lane: laneFor("w9") }]);
    const worker = join("w2");
    const code = (session: string, item: string) => codeOf(server.claim(session, { limit: 1, item }));
    expect(await code("nobody", "stranger")).toBe("unknown-worker");
    expect(await code(worker.session, "stranger")).toBe("unknown-assignment");
    expect(await code(worker.session, "reserved")).toBe("wrong-worker");
    expect(await codeOf(server.claim(worker.session, { limit: 1, lane: laneFor("w9") }))).toBe(
      "wrong-worker",
    );
    expect(await code(worker.session, claim.item)).toBe("already-claimed");
    clock.advance(20_000);
    expect(await code(worker.session, claim.item)).toBe("already-claimed");
    clock.advance(1);
    expect(await code(worker.session, "stranger")).toBe("stale-heartbeat");
    await server.heartbeat(worker.session, []);
    // The server releases the expired claim before it checks the item.
    const [taken] = await server.claim(worker.session, { limit: 1, item: claim.item });
    expect(taken).toMatchObject({ item: claim.item, attempt: 2 });
  });

  it("an uploaded assignment cannot be claimed again, and a dead one only after revival", async () => {
    const { server, worker, claim, send } = await withClaim();
    await send();
    expect(await codeOf(server.claim(worker.session, { limit: 1, item: claim.item }))).toBe(
      "already-uploaded",
    );
    const [next] = (await server.claim(worker.session, { limit: 1 })) as [Claim];
    expect(next.item).not.toBe(claim.item);
    expect(await server.fail(worker.session, next, { message: "no" })).toEqual({ outcome: "dead" });
    expect(await codeOf(server.claim(worker.session, { limit: 1, item: next.item }))).toBe("set-aside");
  });

  it("nobody extends, fails or gives back another worker's claim", async () => {
    const { server, join, queue, claim } = await withClaim();
    const thief = join("w2");
    expect(await codeOf(server.heartbeat(thief.session, [claim]))).toBe("wrong-worker");
    expect(await codeOf(server.fail(thief.session, claim, { message: "mine" }))).toBe("wrong-worker");
    expect(await codeOf(server.release(thief.session, [claim]))).toBe("wrong-worker");
    expect(await queue.state(claim.item)).toMatchObject({ state: "claimed", token: claim.token });
  });
});

describe("uploads that come too late, twice or too large get receipts", () => {
  it("expired: strictly after the time to live; the receipt is kept, the artifact is not", async () => {
    const { clock, book, rollout, send } = await withClaim();
    clock.advance(20_001);
    const receipt = await send();
    expect(receipt.record.outcome).toBe("expired");
    expect(await book.has(receipt.digest)).toBe(true);
    expect(await book.has(rollout.envelope.digest)).toBe(false);
  });

  it("at exactly the time to live an upload is in time", async () => {
    const { clock, send } = await withClaim();
    clock.advance(20_000);
    expect((await send()).record.outcome).toBe("stored");
  });

  it("a claim lost between check and mark is expired, not accepted", async () => {
    const { clock, queue, server, join, claim, worker, upload } = await withClaim();
    const slow = openDeskThatSleeps();
    expect((await slow.upload(worker.session, upload)).record.outcome).toBe("expired");
    expect(await queue.state(claim.item)).toMatchObject({ state: "claimed", attempt: 2 });

    function openDeskThatSleeps() {
      const complete = queue.complete.bind(queue);
      queue.complete = async (key, result) => {
        queue.complete = complete;
        clock.advance(20_001);
        await server.claim(join("w2").session, { limit: 1, item: claim.item });
        return complete(key, result);
      };
      return server;
    }
  });

  it("a repetition is a duplicate and changes nothing, whoever sends it", async () => {
    const { server, join, queue, rollout, upload, send, claim } = await withClaim();
    expect((await send()).record.outcome).toBe("stored");
    const again = await send();
    expect(again.record).toMatchObject({
      outcome: "duplicate",
      message: "this very upload was accepted before",
    });
    const replayed = await server.upload(join("w2").session, upload);
    expect(replayed.record).toMatchObject({ outcome: "duplicate", worker: "w2" });
    expect(await queue.counts()).toMatchObject({ done: 1 });
    expect(await queue.state(claim.item)).toMatchObject({ result: rollout.envelope.digest });
  });

  it("a second, different artifact for an assignment is a duplicate, and the first stands", async () => {
    const { server, worker, queue, claim, rollout, send } = await withClaim();
    await send();
    const other = rolloutFor(claim, {}, { rewards: [0, 1, 1] });
    const receipt = await server.upload(worker.session, uploadOf(claim, other, worker.signer));
    expect(receipt.record.message).toBe("another upload for this assignment was accepted before");
    expect(await queue.state(claim.item)).toMatchObject({ result: rollout.envelope.digest });
  });

  it("the same upload sent 20 times at once is stored once and a duplicate otherwise", async () => {
    const { send } = await withClaim();
    const receipts = await Promise.all(Array.from({ length: 20 }, () => send()));
    const outcomes = receipts.map(({ record }) => record.outcome).sort();
    expect(outcomes.filter((outcome) => outcome === "stored")).toHaveLength(1);
    expect(outcomes.filter((outcome) => outcome === "duplicate")).toHaveLength(19);
  });

  it("one byte over the inline limit is oversize; the claim stays, and the same by reference is stored", async () => {
    const { book, server, worker, claim } = await withClaim();
    const tokens = INLINE_LIMIT_BYTES / 13;
    const column = (value: number) => Array.from({ length: tokens }, () => value);
    const large = rolloutFor(
      claim,
      {},
      { ids: column(1), logprobs: column(-1), mask: column(1), rewards: column(0) },
    );
    const upload = uploadOf(claim, large, worker.signer);
    const receipt = await server.upload(worker.session, upload);
    expect(receipt.record).toMatchObject({
      outcome: "oversize",
      signals: [{ name: "inline-bytes", acceptBudget: INLINE_LIMIT_BYTES }],
    });
    for (const { kind, bytes } of large.blobs) book.put(kind, bytes);
    expect((await server.upload(worker.session, { ...upload, blobs: [] })).record.outcome).toBe("stored");
  });
});

describe("an artifact that a worker left behind when it died", () => {
  /** w1 sealed and died; w2 holds the claim now. */
  async function leftBehind(over: Parameters<typeof rolloutFor>[1] = {}) {
    const at = await openWorkerServer({ trusts: (key) => key !== stranger.publicKey });
    const dead = at.join("w1");
    const [claim] = (await at.server.claim(dead.session, { limit: 1 })) as [Claim];
    const rollout = rolloutFor(claim, over);
    for (const { kind, bytes } of rollout.blobs) at.book.put(kind, bytes);
    at.clock.advance(20_001);
    const heir = at.join("w2");
    const [next] = (await at.server.claim(heir.session, { limit: 1, item: claim.item })) as [Claim];
    const adopt = (signer = dead.signer, change: Partial<Upload> = {}) =>
      at.server.upload(heir.session, {
        ...uploadOf(next, rollout, signer),
        blobs: [],
        adopted: true,
        ...change,
      });
    return { ...at, rollout, claim, next, heir, adopt };
  }

  it("is taken from whoever holds the claim now, if a trusted key signed it; the envelope stays as it was", async () => {
    const { queue, claim, rollout, adopt } = await leftBehind();
    expect((await adopt()).record).toMatchObject({
      outcome: "stored",
      subject: rollout.content.digest,
      worker: "w2",
    });
    expect(await queue.state(claim.item)).toMatchObject({ state: "done", result: rollout.envelope.digest });
  });

  it("is not taken if a stranger signed it, if it is another item's, or if nobody says that it is adopted", async () => {
    const { server, heir, adopt, next } = await leftBehind();
    expect(await codeOf(adopt(stranger))).toBe("bad-signature");
    const [other] = (await server.claim(heir.session, { limit: 1 })) as [Claim];
    expect(await codeOf(adopt(heir.signer, { claim: { item: other.item, token: other.token } }))).toBe(
      "not-bound",
    );
    expect(await codeOf(adopt(heir.signer, { adopted: undefined as never }))).toBe("not-bound");
    expect(next.attempt).toBe(2);
    const wrong = await leftBehind({ envelope: { claim: "r-other:1" } });
    expect(await codeOf(wrong.adopt())).toBe("not-bound");
    const later = await leftBehind({ envelope: { claim: `${next.item}:3` } });
    expect(later.next).toMatchObject({ item: next.item, token: 2 });
    expect(await codeOf(later.adopt())).toBe("not-bound");
  });

  it("may have the name of its own claim, as behind a gateway, and of no other", async () => {
    const [first, second, third] = [await withClaim(), await withClaim(), await withClaim()];
    const named = (at: typeof first, rolloutId: string) =>
      at.server.upload(
        at.worker.session,
        uploadOf(at.claim, rolloutFor(at.claim, { rolloutId }), at.worker.signer),
      );
    for (const name of [".run-2", ".2"])
      expect(await codeOf(named(first, first.claim.item + name))).toBe("not-bound");
    // Earlier versions used the second name, and their workers may still run.
    for (const [at, name] of [
      [second, ".run-2"],
      [third, ".2"],
    ] as const) {
      at.clock.advance(20_001);
      await at.server.heartbeat(at.worker.session, []);
      const [again] = (await at.server.claim(at.worker.session, { limit: 1, item: at.claim.item })) as [
        Claim,
      ];
      expect(again.token).toBe(2);
      expect((await named({ ...at, claim: again }, again.item + name)).record.outcome).toBe("stored");
    }
  });
});

describe("a receipt that a crash took", () => {
  it("is given again for what is done, and for nothing else", async () => {
    const { server, claim, rollout, send } = await withClaim();
    expect(await codeOf(server.reissue(claim.item))).toBe("not-done");
    await send();
    expect((await server.reissue(claim.item)).record).toMatchObject({
      outcome: "stored",
      subject: rollout.content.digest,
      worker: "w1",
      claim: `${claim.item}:1`,
    });
  });
});

describe("structural faults are errors with codes, and nothing is stored", () => {
  it("an item that was never assigned, a worker nobody knows", async () => {
    const { server, upload, send } = await withClaim();
    expect(await codeOf(send({ claim: { item: "stranger", token: 1 } }))).toBe("unknown-assignment");
    expect(await codeOf(server.upload("nobody", upload))).toBe("unknown-worker");
  });

  it("forged digests, changed bytes, strangers among the blobs, blobs left out", async () => {
    const { rollout, upload, send } = await withClaim();
    const forged = digestJson("forged", 1);
    expect(await codeOf(send({ envelope: forged }))).toBe("digest-mismatch");
    expect(await codeOf(send({ content: forged }))).toBe("digest-mismatch");
    const bent = upload.blobs.map(({ kind, bytes }) => ({ kind, bytes: Uint8Array.from(bytes) }));
    bent.at(-1)!.bytes[20]! ^= 1;
    expect(await codeOf(send({ blobs: bent }))).toBe("digest-mismatch");
    expect(await codeOf(send({ blobs: [...upload.blobs, { kind: "x", bytes: Uint8Array.of(1) }] }))).toBe(
      "digest-mismatch",
    );
    expect(await codeOf(send({ blobs: upload.blobs.slice(1) }))).toBe("missing-blob");
    expect(rollout.blobs.length).toBeGreaterThan(3);
  });

  it("a signature by another key, over something else, or over records the book lacks", async () => {
    const { rollout, worker, send } = await withClaim();
    const other = signerFromPem(newKeyPem());
    const { digest } = rollout.envelope;
    const signed = (by: typeof other, subjects: (typeof digest)[]) =>
      codeOf(send({ attestation: by.attest(subjects).bytes }));
    expect(await signed(other, [digest])).toBe("bad-signature");
    expect(await signed(worker.signer, [rollout.content.digest])).toBe("bad-signature");
    expect(await signed(worker.signer, [digest, digestJson("x", 1)])).toBe("missing-blob");
    const forged = openRecord(Attestation, worker.signer.attest([digest]).bytes);
    const text = JSON.stringify({ ...forged, signature: `${"A".repeat(85)}A` });
    const sorted = JSON.stringify(JSON.parse(text), Object.keys(JSON.parse(text)).sort());
    expect(await codeOf(send({ attestation: Buffer.from(sorted) }))).toBe("bad-signature");
  });

  it.each([
    ["another environment", { environment: "env.other@1" }],
    ["another task", { task: { id: "task-rome" } }],
    ["another group", { group: "group-2" }],
    ["another seed", { seed: "7" }],
    ["another rollout id", { rolloutId: "r-other" }],
    ["no assignment", { assignment: undefined }],
    ["another sample", { assignment: { digest: assignment.digest, sample: 2 } }],
    ["another worker", { envelope: { worker: "w2" } }],
    ["another claim", { envelope: { claim: "r-other:1" } }],
    ["another attempt", { envelope: { attempt: 2 } }],
  ])("an artifact with %s is not bound to the claim", async (_, over) => {
    const { server, worker, claim, book } = await withClaim();
    const rollout = rolloutFor(claim, over);
    const upload = uploadOf(claim, rollout, worker.signer);
    expect(await codeOf(server.upload(worker.session, upload))).toBe("not-bound");
    expect(await book.has(rollout.envelope.digest)).toBe(false);
  });

  it("an assignment the book does not have", async () => {
    const { clock, book } = await openWorkerServer();
    const queue = openSqliteQueue(":memory:", { clock });
    await queue.enqueue(workItems(assignment));
    const empty = { ...book, get: async () => undefined };
    const at = await openWorkerServer({ queue, book: empty });
    const worker = at.join("w1");
    const [claim] = (await at.server.claim(worker.session, { limit: 1 })) as [Claim];
    const upload = uploadOf(claim, rolloutFor(claim), worker.signer);
    expect(await codeOf(at.server.upload(worker.session, upload))).toBe("missing-blob");
  });

  it("an environment package that is neither uploaded nor in the book, or is something else", async () => {
    const { server, worker, claim, book } = await withClaim();
    for (const environmentDigest of [digestJson("nowhere", 1), assignment.digest]) {
      const rollout = rolloutFor(claim, { environmentDigest });
      const upload = uploadOf(claim, rollout, worker.signer);
      expect(await codeOf(server.upload(worker.session, upload))).toBe("missing-blob");
      expect(await book.has(rollout.envelope.digest)).toBe(false);
    }
  });

  it("an inline record, named as a proof, that names what nobody has", async () => {
    const { server, worker, claim, book } = await withClaim();
    const feedback = seal(Feedback, {
      ...{ subject: digestJson("nowhere", 1), name: parseId("n"), value: 1 },
      ...{ source: "s", idempotencyKey: "k", atMs: 1 },
    });
    const proofs = [{ kind: "execution", digest: feedback.digest, reference: "log" }];
    const rollout = rolloutFor(claim, { envelope: { proofs } });
    const upload = uploadOf(claim, rollout, worker.signer);
    const whole = { ...upload, blobs: [feedback, ...upload.blobs] };
    expect(await codeOf(server.upload(worker.session, whole))).toBe("missing-blob");
    expect(await book.has(feedback.digest)).toBe(false);
    expect((await server.upload(worker.session, upload)).record.outcome).toBe("stored");
  });

  it("a column with NaN in it", async () => {
    const { server, worker, claim, upload } = await withClaim();
    const rollout = rolloutFor(claim);
    // Built by hand, because the sealer refuses to make it.
    const nan = new Uint8Array(new Float32Array([0, Number.NaN, 0]).buffer);
    const good = rollout.content.record.streams[0]!;
    if (good.level !== "token") throw new Error("not a token stream");
    const kind = columnTag("f32");
    const replace = (bytes: Uint8Array, from: string, to: string) =>
      Buffer.from(Buffer.from(bytes).toString().replaceAll(from, to));
    const content = replace(rollout.content.bytes, good.columns.logprobs.digest, digestBytes(kind, nan));
    const contentDigest = digestBytes(rollout.content.kind, content);
    const envelope = replace(rollout.envelope.bytes, rollout.content.digest, contentDigest);
    const envelopeDigest = digestBytes(rollout.envelope.kind, envelope);
    const blobs = upload.blobs
      .filter((blob) => blob !== rollout.content && blob !== rollout.envelope)
      .slice(0, -2)
      .concat([
        { kind, bytes: nan },
        { kind: rollout.content.kind, bytes: content },
        { kind: rollout.envelope.kind, bytes: envelope },
      ]);
    const attestation = worker.signer.attest([envelopeDigest]).bytes;
    const bent: Upload = { ...upload, content: contentDigest, envelope: envelopeDigest, attestation, blobs };
    expect(await codeOf(server.upload(worker.session, bent))).toBe("non-finite-number");
  });
});
