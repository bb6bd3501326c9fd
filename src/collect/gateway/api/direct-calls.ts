/** Model calls of a program that holds the gateway. They follow the path of an HTTP request after its body is read.
 *  In: a rollout's key and a body. Out: the whole reply, once it is recorded. Opens no connection and parses nothing
 *  twice. */
import type { CallDesk, DeskCall } from "../../rollout-desk.ts";
import { dialectAt } from "../dialects/index.ts";
import { bodyRefusal, DirectReply, HttpRefusal } from "../wire/index.ts";
import { parsePath } from "./api-path.ts";
import type { StartCall } from "./call-starter.ts";
import type { Gatekeeper } from "./identity.ts";
import type { Refuse } from "./refusals.ts";

interface DirectCallsOptions {
  readonly gatekeeper: Pick<Gatekeeper, "authenticate">;
  readonly startCall: StartCall;
  readonly refuse: Refuse;
  readonly requestBytes: number;
  /** Counts the reply until it closes, and reserves memory for its request. False if the memory limit is reached. */
  readonly begin: (reply: DirectReply, bytes: number) => boolean;
  /** Makes a stop wait for the work. */
  readonly hold: (work: Promise<unknown>) => void;
}

/** The headers that HTTP clients send with their bodies. */
const HEADERS = ["content-type", "application/json"];

export class DirectCalls {
  readonly #options: DirectCallsOptions;
  readonly #inProgress = new Set<DirectReply>();
  #isStopping = false;
  #whenNone = () => {};

  constructor(options: DirectCallsOptions) {
    this.#options = options;
  }

  call(call: DeskCall): ReturnType<CallDesk["call"]> {
    const { signal } = call;
    return new Promise((done, failed) => {
      const cut = () => reply.destroy();
      const reply: DirectReply = new DirectReply((whole) => {
        signal?.removeEventListener("abort", cut);
        this.#inProgress.delete(reply);
        if (this.#inProgress.size === 0) this.#whenNone();
        if (whole !== undefined) done(whole);
        else failed(signal?.aborted ? signal.reason : new Error("the gateway broke off the reply"));
      });
      this.#inProgress.add(reply);
      signal?.addEventListener("abort", cut, { once: true });
      if (signal?.aborted) cut();
      else this.#start(call, reply);
    });
  }

  /** Refuses further calls. Resolves when no call is in progress. */
  async stop(): Promise<void> {
    this.#isStopping = true;
    if (this.#inProgress.size === 0) return;
    await new Promise<void>((none) => {
      this.#whenNone = none;
    });
  }

  cut(): void {
    for (const reply of this.#inProgress) reply.destroy();
  }

  #start({ path: url, apiKey, body: text }: DeskCall, response: DirectReply): void {
    const { gatekeeper, startCall, refuse, requestBytes: limit, begin, hold } = this.#options;
    const path = parsePath(url);
    const body = Buffer.from(text);
    let rollout: string | undefined;
    const refused = (error: unknown) => refuse(response, error, path, rollout);
    try {
      const refusal = bodyRefusal(body.length, { limit, hold: (bytes) => begin(response, bytes) });
      if (refusal !== undefined) throw refusal;
      if (this.#isStopping) throw new HttpRefusal(503, "stopping", "the gateway is being stopped.");
      const dialect = dialectAt(path.path);
      if (dialect === undefined)
        throw new HttpRefusal(404, "not-found", `no model is called at ${path.path}.`);
      const caller = gatekeeper.authenticate({ authorization: `Bearer ${apiKey}` }, path);
      rollout = caller.rollout;
      const waits = startCall({ dialect, path, caller, body, rawHeaders: HEADERS, response });
      if (waits !== undefined) hold(waits.catch(refused));
    } catch (error) {
      refused(error);
    }
  }
}
