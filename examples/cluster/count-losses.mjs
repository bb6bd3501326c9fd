/** Counts the losses of a window in a cluster's book, read on a machine without a cached copy. In: the location of the
 *  book. Out: counts of missing, duplicate or unrecorded results, and the problems that verify finds. */
import { join } from "node:path";
import { openBook, verifyBook } from "../../dist/index.js";

/** Outcomes of an upload that make it the result of its rollout. */
const ACCEPTED = ["stored", "accepted-exact", "accepted-off-policy", "quarantined"];

export async function countLosses({ folder, book: url, env }) {
  Object.assign(process.env, env, { ROLLBOOK_CACHE: join(folder, "reader") });
  const book = await openBook(url, { mode: "read" });
  try {
    const index = await book.index();
    const contents = new Set();
    for (const { content } of index.runs()) contents.add(content.digest);
    const accepted = await acceptedContents(book, index);
    const sealings = index.ofKind("rollbook.loop-members.v1");
    const members = (await readJson(book, sealings[0].digest)).rollouts;
    const unrecorded = [];
    for (const { content } of members)
      if (contents.has(content)) unrecorded.push(...(await unrecordedReplies(book, content)));
    const { report } = await verifyBook(book);
    return {
      ...{ members: members.length, sealings: sealings.length },
      accepted: accepted.size,
      artifacts: contents.size,
      missing: members.filter(({ content }) => !contents.has(content)),
      twice: [...accepted].filter(([, subjects]) => subjects.size > 1),
      unrecorded,
      problems: report.problems,
    };
  } finally {
    await book.close();
  }
}

/** By rollout, the contents that a receipt accepts. A claim is named `<rollout>:<number>`. */
async function acceptedContents(book, index) {
  const accepted = new Map();
  for (const { digest } of index.ofKind("rollbook.receipt.v1")) {
    const { claim, outcome, subject } = await readJson(book, digest);
    if (!ACCEPTED.includes(outcome)) continue;
    const rollout = claim.replace(/:\d+$/, "");
    accepted.set(rollout, (accepted.get(rollout) ?? new Set()).add(subject));
  }
  return accepted;
}

/** Replies that the agent reports and no call of its rollout has recorded. */
async function unrecordedReplies(book, digest) {
  const { calls, finalState } = await readJson(book, digest);
  if (finalState === undefined) return [];
  const replies = new Set();
  for (const call of calls)
    for (const message of (await readJson(book, call)).response.messages)
      replies.add((await readJson(book, message)).content);
  return (await readJson(book, finalState)).filter((text) => !replies.has(text));
}

async function readJson(book, digest) {
  return JSON.parse(Buffer.from((await book.store.get(digest)).bytes).toString());
}
