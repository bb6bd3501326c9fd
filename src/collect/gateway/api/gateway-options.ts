/** Options of a gateway, and its interface to the program that opened it. Types only. */
import type { Clock, Rng } from "../../../base/index.ts";
import type { Signer } from "../../../contract/index.ts";
import type { PromptVectors } from "../../../policy/index.ts";
import type { Book } from "../../../store/index.ts";
import type { KeptThread } from "../../kept-thread.ts";
import type { Admit } from "../../receipt.ts";
import type { CallDesk } from "../../rollout-desk.ts";
import type { TellEvent } from "../call/index.ts";
import type { GatewayConfig } from "../config.ts";
import type { Redact } from "../redact/index.ts";
import type { DamagedRollout } from "../rollouts/index.ts";
import type { Choose, LoadRouter, LocalUpstream } from "../upstream/index.ts";

export interface GatewayOptions {
  readonly config: GatewayConfig;
  /** The book, open for writing. The caller closes the book. */
  readonly book: Book;
  readonly clock: Clock;
  readonly rng: Rng;
  /** Makes ids for rollouts that were opened without an id. Ids must be unique over the life of the book. */
  readonly newId: () => string;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly signer?: Signer | undefined;
  /** The router for aliases. Without a router, an alias uses the first working model of its list. */
  readonly choose?: Choose | undefined;
  /** Loads the routers that rollouts name when they are opened. Without it the gateway refuses such an opening. */
  readonly loadRouter?: LoadRouter | undefined;
  /** Returns the vectors of a prompt for that router; undefined gives the router none. The call waits for the
   *  vectors. A stop of the gateway aborts the signal. */
  readonly embed?: ((prompt: string, signal: AbortSignal) => Promise<PromptVectors | undefined>) | undefined;
  /** Additional lines of `GET /metrics`, for example of that router. */
  readonly moreMetrics?: (() => string) | undefined;
  /** Judges every artifact when its rollout is closed. The result is stored in a receipt. */
  readonly admit?: Admit | undefined;
  /** Upstreams in this process, for base URLs of the form `local:<name>`. */
  readonly local?: Readonly<Record<string, LocalUpstream>> | undefined;
  /** Receives every message, tool list, parameter object and final state before it is recorded. Also receives the
   *  texts and names in rollouts and feedback; the gateway refuses a name that the hook changes. */
  readonly redact?: Redact | undefined;
  /** Keeps the sealing thread between gateways, for programs that open several gateways on a book in turn. */
  readonly keptThread?: KeptThread | undefined;
  readonly log?: ((line: string) => void) | undefined;
  /** Called at the end of every call, at a failover, at the close of a rollout, and for every refused call. Must be
   *  fast: calls wait for it. */
  readonly onEvent?: TellEvent | undefined;
}

export interface Gateway {
  readonly url: string;
  readonly host: string;
  readonly port: number;
  /** Open rollouts recovered from an earlier run. */
  readonly recovered: readonly string[];
  /** Rollouts of an earlier run whose journal has lost entries. */
  readonly damaged: readonly DamagedRollout[];
  /** Opens, inspects and closes rollouts like the paths below /v1/rollouts, and calls models. For programs that hold
   *  the gateway. */
  readonly desk: CallDesk;
  /** Seals rollouts that are idle for too long. A timer also calls this function. */
  sealIdle(): Promise<number>;
  /** Stops listening, waits for calls in progress, and seals closed rollouts. Open rollouts stay open. Ends within
   *  `graceMs`: after `callsMs` it cuts the remaining calls. The next start seals the rollouts that are left. */
  close(graceMs?: number, callsMs?: number): Promise<void>;
}
