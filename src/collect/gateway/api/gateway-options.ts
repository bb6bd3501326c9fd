/** What a gateway is opened with, and what it gives to the program that opened it. Types only. */
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
  /** Opened to write; stays the caller's to close. */
  readonly book: Book;
  readonly clock: Clock;
  readonly rng: Rng;
  /** Ids of rollouts that were not given one. Must be unique over the life of the book. */
  readonly newId: () => string;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly signer?: Signer | undefined;
  /** The router for aliases; without one, the first of the list that works. */
  readonly choose?: Choose | undefined;
  /** Reads the routers that rollouts name when they are opened; without it such an opening is refused. */
  readonly loadRouter?: LoadRouter | undefined;
  /** The vectors of a prompt, asked for before that router chooses; undefined: the router gets none. The call waits for it.
   *  A stop aborts the signal. */
  readonly embed?: ((prompt: string, signal: AbortSignal) => Promise<PromptVectors | undefined>) | undefined;
  /** More lines of `GET /metrics`, as of that router. */
  readonly moreMetrics?: (() => string) | undefined;
  /** Judges every artifact when its rollout is closed; what it says stands in a receipt. */
  readonly admit?: Admit | undefined;
  /** Upstreams of this process, for base URLs of the form `local:<name>`. */
  readonly local?: Readonly<Record<string, LocalUpstream>> | undefined;
  /** Sees every message, tool list, parameter object and final state before it is recorded, and the words and names
   *  that come with rollouts and feedback; a name that it changes is refused. */
  readonly redact?: Redact | undefined;
  /** For programs that open one gateway after another on a book: the thread that seals stays there in between. */
  readonly keptThread?: KeptThread | undefined;
  readonly log?: ((line: string) => void) | undefined;
  /** Hears of every call when it ends, of failovers, of rollouts that are closed, and of calls that the gateway
   *  refuses. Must be quick: calls wait for it. */
  readonly onEvent?: TellEvent | undefined;
}

export interface Gateway {
  readonly url: string;
  readonly host: string;
  readonly port: number;
  /** Open rollouts found from an earlier run. */
  readonly recovered: readonly string[];
  /** Rollouts of an earlier run of which the journal has lost something. */
  readonly damaged: readonly DamagedRollout[];
  /** Opens, looks at and closes rollouts like the paths below /v1/rollouts, and calls models, for programs that hold the
   *  gateway. */
  readonly desk: CallDesk;
  /** Seals rollouts that have been silent for too long; also done by a timer. */
  sealIdle(): Promise<number>;
  /** Stops listening, lets calls in progress end, seals what is closed, and nothing that is still open. Ends within
   *  `graceMs`: calls that go on after `callsMs` are cut, and what is not sealed then is sealed by the next start. */
  close(graceMs?: number, callsMs?: number): Promise<void>;
}
