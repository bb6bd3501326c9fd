/** Scenes 6 to 8: the book is verified, one changed byte in a copy is found, forged input is refused. */
import { cpSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { isRollbookError } from "../../base/index.ts";
import { inlineRollout, parseRolloutDraft, sealRollout } from "../../contract/index.ts";
import { verifyBook } from "../../keep/verify/index.ts";
import { openBook } from "../../store/index.ts";
import { plural } from "../../view/format.ts";
import type { Stage, TourScene } from "./stage.ts";

export const verifyScene: TourScene = {
  title: "verify",
  async play({ book, signer }) {
    const report = await verifyBook(book, { trustedKeys: [signer.publicKey] });
    const { trust } = report;
    return {
      lines: [
        `${plural(report.blobs, "blob")}, ${plural(report.problems.length, "problem")}; ${trust.trusted} of ${trust.artifacts} artifacts signed by a trusted key`,
      ],
      proved: report.ok
        ? "every digest, reference and signature fits, and each batch follows from its manifest"
        : `NOTHING: ${report.problems[0]!.message}`,
      data: { ok: report.ok, blobs: report.blobs, problems: report.problems, trust },
    };
  },
};

export const tamperScene: TourScene = {
  title: "tamper",
  async play(stage) {
    const { content } = stage.rollouts[3]!;
    const copy = join(stage.scratch, "tampered");
    const offset = await flipOneByte(stage, content.digest, copy);
    const tampered = await openBook(copy, { clock: stage.clock, mode: "read" });
    const report = await verifyBook(tampered);
    await tampered.close();
    const found = report.problems.some(({ digest }) => digest === content.digest);
    return {
      lines: [
        `one bit changed in a copy, at byte ${offset}: verify reports ${plural(report.problems.length, "problem")}`,
        `it names ${content.digest.slice(0, 19)}…, which is rollout ${content.record.rolloutId}`,
      ],
      proved: found
        ? "a changed record cannot pass, and is found by name"
        : "NOTHING: the change was not found",
      data: { found, record: content.digest, problems: report.problems.length },
    };
  },
};

export const refusalScene: TourScene = {
  title: "refusals",
  async play({ book, rollouts }) {
    const { content, envelope } = rollouts[0]!;
    const pair = { content: content.digest, envelope: envelope.digest };
    const wire = (await inlineRollout((digest) => book.get(digest), pair)) as {
      scores: unknown[];
      streams: object[];
    };
    const token = wire.streams[0] as { logprobs: number[] };
    const cases: [string, unknown][] = [
      [
        "a better score under the old digest",
        { ...wire, scores: [{ name: "correct", value: 100, weight: 1 }] },
      ],
      ["no sample at all", { ...wire, streams: [{ ...token, mask: token.logprobs.map(() => 0) }] }],
      ["one logprob too few", { ...wire, streams: [{ ...token, logprobs: token.logprobs.slice(1) }] }],
    ];
    const codes = cases.map(([, value]) => refusalCode(value));
    return {
      lines: cases.map(([what], i) => `${what}: ${codes[i]}`),
      proved: codes.includes("ACCEPTED")
        ? "NOTHING: forged input was accepted"
        : "what contradicts itself is refused by code before anything is written",
      data: { codes },
    };
  },
};

function refusalCode(value: unknown): string {
  try {
    sealRollout(parseRolloutDraft(value));
    return "ACCEPTED";
  } catch (error) {
    if (isRollbookError(error)) return error.code;
    throw error;
  }
}

/** Copies the book and flips the lowest bit in the middle of one record. */
async function flipOneByte({ book }: Stage, digest: string, copy: string): Promise<number> {
  cpSync(book.root, copy, { recursive: true });
  for await (const item of book.scan()) {
    if (item.type === "damage" || item.digest !== digest) continue;
    const { file, offset, length } = item.location;
    const path = join(copy, file);
    const bytes = readFileSync(path);
    const at = offset + (length >> 1);
    bytes[at] = bytes[at]! ^ 1;
    writeFileSync(path, bytes);
    return at;
  }
  throw new Error(`${digest} is not in the book`);
}
