/** A worker to be killed: claims, seals, uploads, and prints item, outcome and envelope of every receipt it gets.
 *  With the argument "drain" it ends when no work is left.
 *  node queue-worker.mjs MODULES DIRECTORY NAME [drain] */
import { writeSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";

const [modules, directory, name, drain] = process.argv.slice(2);
const { openBook } = await import(`${modules}/store/index.js`);
const { Assignment, newKeyPem, openRecord, sampleSeed, sealRollout, signerFromPem } = await import(
  `${modules}/contract/index.js`
);
const { openSqliteQueue } = await import(`${modules}/collect/queue/index.js`);
const { claimId } = await import(`${modules}/collect/rollout/work/index.js`);
const { makeRegistration, makeWorkerServer } = await import(`${modules}/collect/rollout/worker/index.js`);

const clock = { nowMs: () => Date.now() };
const book = await openBook(`${directory}/book`, { clock });
const queue = openSqliteQueue(`${directory}/queue.db`, { clock, ttlMs: 400 });
const server = makeWorkerServer({ queue, book, clock, trusts: () => true, newSession: () => name });
const signer = signerFromPem(newKeyPem());
const { session } = server.register(makeRegistration(signer, name, clock.nowMs()));
const watch = queue.watch();

for (;;) {
  await server.heartbeat(session, []);
  const claims = await server.claim(session, { limit: drain === "drain" ? 40 : 6 });
  await Promise.all(claims.map(work));
  const { waiting, claimed } = await queue.counts();
  if (drain === "drain" && waiting + claimed === 0) break;
  if (claims.length === 0) await watch.changed(50);
}
await queue.close();
await book.close();

async function work(claim) {
  const { assignment, sample } = claim.payload;
  // Some rollouts take longer than others; a few take longer than their claim lives.
  const slowMs = (claim.token * 7919 + sample * 104729 + Number.parseInt(claim.item.slice(2, 8), 16)) % 60;
  await sleep(slowMs === 0 ? 450 : slowMs % 10);
  const rollout = await makeRollout(claim, assignment, sample);
  const { content, envelope, blobs } = rollout;
  const attestation = signer.attest([envelope.digest]).bytes;
  const { item, token } = claim;
  const upload = {
    claim: { item, token },
    content: content.digest,
    envelope: envelope.digest,
    attestation,
    blobs,
  };
  const { record } = await server.upload(session, upload);
  writeSync(1, `${item} ${record.outcome} ${envelope.digest}\n`);
}

async function makeRollout(claim, assignment, sample) {
  const { environment, task, group } = openRecord(Assignment, (await book.get(assignment)).bytes);
  const revision = { id: "r1", digest: `sha256:${"0".repeat(64)}` };
  const numbers = { ids: [sample, claim.token], logprobs: [-1, -2], rewards: [0, sample] };
  return sealRollout({
    rolloutId: claim.item,
    environment,
    task,
    group,
    assignment: { digest: assignment, sample },
    seed: sampleSeed(assignment, sample),
    dataSource: "synthetic",
    sampling: {},
    calls: [],
    scores: [],
    ending: { kind: "terminal" },
    streams: [{ level: "token", family: "crash", logprobKind: "sampling", revision, ...numbers }],
    envelope: {
      worker: name,
      claim: claimId(claim),
      attempt: claim.attempt,
      startedAtMs: clock.nowMs(),
      endedAtMs: clock.nowMs(),
    },
  });
}
