/** The thread of a gateway host: opens gateways on one book and answers for their desks. In: asks, many in a message.
 *  Out: a reply to each, and lines of the log. Asks and replies are JSON: a text crosses to a thread faster than objects do. */
import type { KeyObject } from "node:crypto";
import { parentPort, workerData } from "node:worker_threads";
import { isRollbookError, type Json, reasonOf } from "../../base/index.ts";
import { signerFromKey } from "../../contract/index.ts";
import { openBook } from "../open/index.ts";
import { type OpenGateway, openGateway } from "./gateway.ts";
import { identityWith } from "./identity.ts";

export interface GatewayThreadData {
  readonly root: string;
  readonly key: KeyObject;
}

/** `gateway` is the number that its opener gave it. */
export type GatewayAsk =
  | { readonly ask: "start"; readonly gateway: number; readonly config: object }
  | { readonly ask: "stop"; readonly gateway: number }
  | { readonly ask: "open"; readonly gateway: number; readonly opening: object }
  | { readonly ask: "status"; readonly gateway: number; readonly rollout: string }
  | { readonly ask: "close"; readonly gateway: number; readonly rollout: string; readonly closing: object };

export type NumberedAsk = GatewayAsk & { readonly number: number };

/** A list of asks as JSON, or "end". */
export type ToGatewayThread = string;

export type GatewayReply =
  | { readonly number: number; readonly value: object }
  | {
      readonly number: number;
      readonly failure: {
        readonly code: string | undefined;
        readonly fields: Readonly<Record<string, unknown>>;
        readonly message: string;
      };
    }
  | { readonly log: string };

const { root, key } = workerData as GatewayThreadData;
const identity = identityWith(signerFromKey(key));
const opened = openBook(root, { signer: () => identity.signer });
opened.catch(() => {}); // the reply to the first ask tells it
const gateways = new Map<number, OpenGateway>();
let replies: GatewayReply[] = [];

parentPort!.on("message", (message: ToGatewayThread) => {
  if (message === "end") void end();
  else for (const ask of JSON.parse(message) as NumberedAsk[]) void answer(ask);
});

async function end(): Promise<void> {
  await opened.then(
    (book) => book.close(),
    () => {},
  );
  parentPort!.close();
}

async function answer(ask: NumberedAsk): Promise<void> {
  const { number } = ask;
  try {
    say({ number, value: await valueFor(ask) });
  } catch (error) {
    const { code, fields } = isRollbookError(error) ? error : { code: undefined, fields: {} };
    say({ number, failure: { code, fields: fields as Record<string, Json>, message: reasonOf(error) } });
  }
}

async function valueFor(ask: GatewayAsk): Promise<object> {
  switch (ask.ask) {
    case "start": {
      const place = { book: await opened, port: 0, identity: () => identity };
      const log = (line: string) => say({ log: line });
      const gateway = await openGateway({ ...place, config: ask.config, log });
      gateways.set(ask.gateway, gateway);
      return { url: gateway.url };
    }
    case "stop": {
      await gateways.get(ask.gateway)!.close();
      gateways.delete(ask.gateway);
      return {};
    }
    case "open":
      return gateways.get(ask.gateway)!.desk.open(ask.opening);
    case "status":
      return gateways.get(ask.gateway)!.desk.status(ask.rollout);
    case "close":
      return gateways.get(ask.gateway)!.desk.close(ask.rollout, ask.closing);
    default:
      return ask satisfies never;
  }
}

function say(reply: GatewayReply): void {
  if (replies.length === 0)
    setImmediate(() => {
      parentPort!.postMessage(JSON.stringify(replies));
      replies = [];
    });
  replies.push(reply);
}
