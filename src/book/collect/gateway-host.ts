/** Opens gateways in a thread of their own: HTTP, journal and sealing then take no time from the thread that runs agents.
 *  In: an open book, an identity. Out: gateways whose rollouts are opened and closed through messages. A signer or a clock
 *  that cannot go to a thread has its gateways in this one. */
import { once } from "node:events";
import type { Worker } from "node:worker_threads";
import { RollbookError, reasonOf, systemClock } from "../../base/index.ts";
import type { Gateway } from "../../collect/gateway/index.ts";
import { startThread } from "../../collect/index.ts";
import { keyOfSigner } from "../../contract/index.ts";
import type { BookOnDisk } from "../open/index.ts";
import { openGateway } from "./gateway.ts";
import type {
  GatewayAsk,
  GatewayReply,
  GatewayThreadData,
  NumberedAsk,
  ToGatewayThread,
} from "./gateway-thread.ts";
import type { Identity } from "./identity.ts";

interface HostOptions {
  readonly book: BookOnDisk;
  readonly identity: Identity;
  readonly log: (line: string) => void;
}

type HostedGateway = Pick<Gateway, "url" | "desk"> & { close(): Promise<void> };

export interface GatewayHost {
  /** With a free port of this machine. */
  open(config: object): Promise<HostedGateway>;
  close(): Promise<void>;
}

export function startGatewayHost(options: HostOptions): GatewayHost {
  const { book, identity, log } = options;
  const key = keyOfSigner(identity.signer);
  if (key !== undefined && book.clock === systemClock) return new ThreadHost({ root: book.root, key }, log);
  return {
    open: (config) => openGateway({ book, port: 0, log, identity: () => identity, config }),
    close: async () => {},
  };
}

interface OpenAsk {
  readonly done: (value: object) => void;
  readonly failed: (error: Error) => void;
}

class ThreadHost implements GatewayHost {
  readonly #thread: Worker;
  readonly #log: (line: string) => void;
  readonly #open = new Map<number, OpenAsk>();
  #asks: NumberedAsk[] = [];
  #numbers = 0;
  #gateways = 0;
  #death: Error | undefined;

  constructor(data: GatewayThreadData, log: (line: string) => void) {
    this.#log = log;
    this.#thread = startThread(import.meta.url, "gateway-thread", {
      ...{ name: "rollbook-gateway", workerData: data, startsThreads: true },
      // What a call needs lives until it is answered: hundreds are in progress.
      resourceLimits: { maxYoungGenerationSizeMb: 96 },
    });
    this.#thread.on("message", (replies: string) => {
      for (const reply of JSON.parse(replies) as GatewayReply[]) this.#hear(reply);
    });
    this.#thread.on("error", (error) => this.#die(reasonOf(error), error));
    this.#thread.on("exit", () => this.#die("it ended"));
    this.#thread.unref();
  }

  async open(config: object): Promise<HostedGateway> {
    const gateway = this.#gateways++;
    const { url } = (await this.#ask({ ask: "start", gateway, config })) as { url: string };
    return {
      url,
      desk: {
        open: (opening) => this.#ask({ ask: "open", gateway, opening }) as Promise<{ apiKey: string }>,
        status: (rollout) => this.#ask({ ask: "status", gateway, rollout }),
        close: (rollout, closing) => this.#ask({ ask: "close", gateway, rollout, closing }),
      },
      close: async () => {
        await this.#ask({ ask: "stop", gateway });
      },
    };
  }

  async close(): Promise<void> {
    if (this.#death !== undefined) return;
    this.#thread.ref();
    const exit = once(this.#thread, "exit"); // rejects if the thread fails instead
    this.#thread.postMessage("end" satisfies ToGatewayThread);
    await exit;
  }

  /** Whatever is asked in one turn of the event loop crosses in one message. */
  #ask(ask: GatewayAsk): Promise<object> {
    return new Promise((done, failed) => {
      if (this.#death !== undefined) return failed(this.#death);
      const number = this.#numbers++;
      if (this.#open.size === 0) this.#thread.ref();
      this.#open.set(number, { done, failed });
      if (this.#asks.length === 0) setImmediate(() => this.#send());
      this.#asks.push({ ...ask, number });
    });
  }

  #send(): void {
    const asks = this.#asks;
    this.#asks = [];
    this.#thread.postMessage(JSON.stringify(asks));
  }

  #hear(reply: GatewayReply): void {
    if ("log" in reply) {
      this.#log(reply.log);
      return;
    }
    const { done, failed } = this.#open.get(reply.number)!;
    this.#open.delete(reply.number);
    if (this.#open.size === 0) this.#thread.unref();
    if ("value" in reply) done(reply.value);
    else {
      const { code, fields, message } = reply.failure;
      failed(code === undefined ? new Error(message) : new RollbookError(code, fields, message));
    }
  }

  #die(why: string, cause?: unknown): void {
    this.#death ??= new RollbookError(
      "gateway-died",
      {},
      `the thread of the gateway has ended: ${why}. Nothing recorded is lost; start the command again.`,
      { cause },
    );
    for (const { failed } of this.#open.values()) failed(this.#death);
    this.#open.clear();
  }
}
