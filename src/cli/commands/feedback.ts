/** `rollbook feedback`: an outcome for a rollout or one of its calls, at any time, in a book or at a running gateway. */
import { type Command, InvalidArgumentError } from "commander";
import { reasonOf } from "../../base/errors.ts";
import { type Id, parseId, RollbookError } from "../../base/index.ts";
import { resolveArtifact } from "../../book/find/resolve.ts";
import { keyringOf, loadSigner } from "../../book/keyring.ts";
import { Feedback, RolloutContent, seal } from "../../contract/index.ts";
import { readRecord } from "../../store/read-record.ts";
import { makeSealer } from "../../store/sealer.ts";
import { jsonLine } from "../../view/format.ts";
import { addCommand, wholeNumber } from "../command.ts";
import type { Io } from "../io.ts";
import { gatewayToken } from "../options/run-options.ts";
import { type BookFlags, withIndexedBook } from "../with-book.ts";

interface FeedbackFlags extends BookFlags {
  name: string;
  value: number;
  call?: number;
  key?: string;
  source: string;
  gateway?: string;
  gatewayTokenEnv?: string;
  json?: true;
}

export function addFeedback(program: Command, io: Io): void {
  addCommand(program, "feedback", {
    summary: "add an outcome to a rollout, or to one of its calls",
    description: `Add an outcome to a rollout, or to one of its calls, at any time after the fact. It is a record of its own; the
artifact stays as it is, and \`batch assemble --feedback NAME\` reads it. The same key again changes nothing. With
--gateway the rollout may still be open there.`,
    examples: [
      "rollbook feedback r-0001 --name solved --value 1",
      "rollbook feedback r-0001 --call 0 --name helpful --value 0.5 --key ticket-17",
    ],
  })
    .argument("<rollout>", "rollout id; in a book also a digest, or the first digits of one")
    .requiredOption("--name <name>", "what was found out")
    .requiredOption("--value <number>", "how good it was", number)
    .option("--call <n>", "of this call of the rollout, from 0 (default: of all of it)", wholeNumber)
    .option("--key <key>", "makes it count once, however often it is sent (default: the name)")
    .option("--source <text>", "who says so", "feedback")
    .option("--gateway <url>", "tell this gateway instead of writing to the book")
    .option("--gateway-token-env <name>", "the environment variable with the gateway's token")
    .action(async (rollout: string, flags: FeedbackFlags) => {
      const outcome = { ...flags, name: parseId(flags.name, "--name"), key: flags.key ?? flags.name };
      const told =
        flags.gateway === undefined
          ? await addToBook(io, rollout, outcome)
          : await tellGateway(io, rollout, { ...outcome, gateway: flags.gateway });
      io.out(flags.json ? jsonLine(told) : `${told.added ? "added" : "there already"}\n`);
    });
}

type Outcome = FeedbackFlags & { readonly name: Id; readonly key: string };
interface Told {
  readonly added: boolean;
  readonly feedback?: string;
}

async function addToBook(io: Io, rollout: string, outcome: Outcome): Promise<Told> {
  const { name, value, call, key, source } = outcome;
  return withIndexedBook(io, { ...outcome, mode: "write" }, async (store, index) => {
    const { content } = resolveArtifact(index, rollout);
    const { calls } = await readRecord(store, RolloutContent, content.digest);
    if (call !== undefined && call >= calls.length)
      throw new RollbookError(
        "unknown-call",
        { rollout: content.id, call, calls: calls.length },
        `${content.id} has ${calls.length} calls; there is no call ${call}. Count from 0.`,
      );
    const known = index
      .ofKind(Feedback.kind)
      .find(
        ({ fields }) =>
          fields.subject === content.digest &&
          fields.name === name &&
          fields.idempotencyKey === key &&
          fields.call === call,
      );
    if (known !== undefined) {
      if (known.fields.value === value) return { added: false, feedback: known.digest };
      throw new RollbookError(
        "key-reused",
        { rollout: content.id, name, key, value: known.fields.value },
        `under the key ${JSON.stringify(key)} the outcome ${name} of ${content.id} is ${known.fields.value} already. Give another --key to add one.`,
      );
    }
    const record = seal(Feedback, {
      ...{ subject: content.digest, name, value, source, idempotencyKey: key, atMs: io.clock.nowMs() },
      ...(call === undefined ? {} : { call }),
    });
    await makeSealer(store, loadSigner(keyringOf(io))).add({ envelope: record, blobs: [record] });
    return { added: true, feedback: record.digest };
  });
}

async function tellGateway(io: Io, rollout: string, outcome: Outcome & { gateway: string }): Promise<Told> {
  const { name, value, call, key: idempotencyKey, source } = outcome;
  const url = `${outcome.gateway.replace(/\/+(v1\/?)?$/, "")}/v1/feedback`;
  const token = gatewayToken(io, outcome.gatewayTokenEnv);
  const subject = call === undefined ? { rollout } : { call: `${encodeURIComponent(rollout)}.${call}` };
  const response = await fetch(url, {
    method: "POST",
    headers: {
      "content-type": "application/json",
      ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
    },
    body: JSON.stringify({ ...subject, name, value, source, idempotencyKey }),
  }).catch((cause: unknown) => {
    throw new RollbookError(
      "gateway-away",
      { url },
      `the gateway at ${url} cannot be reached: ${reasonOf(cause)}. Start it, or leave --gateway out for sealed rollouts.`,
      { cause },
    );
  });
  const text = await response.text();
  if (response.ok) return JSON.parse(text) as Told;
  throw new RollbookError(
    "gateway-refused",
    { url, status: response.status },
    `the gateway refused the outcome: ${response.status} ${text.slice(0, 500)}`,
  );
}

function number(text: string): number {
  const value = Number(text);
  if (text.trim() === "" || !Number.isFinite(value)) throw new InvalidArgumentError("It must be a number.");
  return value;
}
