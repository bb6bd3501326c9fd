/** The rollouts of a gateway: open, call, feedback, close; a client, a cap or idle time ends them. In: requests
 *  about rollouts. Out: events in the journal, and state transitions. close-coordinator.ts has the rollouts sealed.
 *  Does not speak HTTP. */
import { type Digest, given, type Id, parseId } from "../../../base/index.ts";
import { openRecord, RolloutContent, sealFinalState } from "../../../contract/index.ts";
import type { GatewayConfig } from "../config.ts";
import type { OpenedEvent } from "../journal/index.ts";
import { type DecisionSealer, type DecisionToSeal, detached } from "../sealing/index.ts";
import { HttpRefusal } from "../wire/index.ts";
import { CloseCoordinator, type CloseCoordinatorOptions, type CloseRequest } from "./close-coordinator.ts";
import type { ClosedIndex } from "./closed-index.ts";
import { FeedbackAdder, type NewFeedback, unknownRollout } from "./feedback-adder.ts";
import { callsText } from "./lost-calls.ts";
import { OpenRollout } from "./open-rollout.ts";
import { isSingle, makeOpening, sameOpening, singleOpening, type WantedOpening } from "./opening.ts";
import type { DamagedRollout, Recovered } from "./recover.ts";
import { requireSameClosing } from "./repeated-close.ts";
import { requireRoom } from "./rollout-caps.ts";
import { type CloseReport, RolloutStates } from "./rollout-states.ts";

/** Status of an open rollout. */
interface RolloutStatus {
  readonly id: string;
  readonly turns: number;
  readonly usage: {
    readonly calls: number;
    readonly promptTokens: number;
    readonly completionTokens: number;
    /** Sum over the calls with known cost. */
    readonly costUsd: number;
    /** Number of calls with unknown cost. Absent if there are none. */
    readonly unpriced?: number;
  };
  /** Status and reason of its last call, if the gateway refused it. */
  readonly lastRefusal?: string;
}

export interface RolloutsOptions extends Omit<CloseCoordinatorOptions, "states"> {
  readonly config: GatewayConfig;
  readonly closed: ClosedIndex;
  /** Refuses an opening that names records missing in the book. Undefined if the opening names none. */
  readonly checkNamed: (id: Id, opening: OpenedEvent) => Promise<void> | undefined;
  readonly newId: () => string;
  readonly decisions: DecisionSealer;
}

export class Rollouts {
  readonly #deps: RolloutsOptions;
  readonly #gatewayName: Id;
  /** A rollout from before the start is idle from the start at the earliest: its agent could not call a stopped gateway. */
  readonly #startedMs: number;
  readonly #states = new RolloutStates();
  /** Rotates the choice of the failed single call that is retried. */
  #turns = 0;
  readonly #closing: CloseCoordinator;
  readonly #feedback: FeedbackAdder;

  constructor(options: RolloutsOptions) {
    this.#deps = options;
    this.#gatewayName = parseId(options.config.worker, "worker");
    this.#startedMs = options.clock.nowMs();
    this.#closing = new CloseCoordinator({ ...options, states: this.#states });
    this.#feedback = new FeedbackAdder({ ...options, states: this.#states, closing: this.#closing });
  }

  /** Adopts the state of a gateway that died: single calls are sealed, the other rollouts continue. */
  async adopt({ open, halfClosed, incomplete, damaged }: Recovered): Promise<void> {
    this.#tell(damaged);
    for (const rollout of [...open, ...halfClosed.map(({ rollout }) => rollout)]) this.#states.opens(rollout);
    await this.#closing.complete(incomplete);
    for (const { rollout, closed } of halfClosed) {
      const { ending, scores, finalState: digest } = closed;
      void this.#closing.begin(rollout, { ending, scores, finalState: digest && { digest } });
    }
    // Sealed in the background while the gateway serves. A rollout that cannot be sealed stays open and is retried
    // later.
    for (const rollout of open) if (isSingle(rollout)) void this.#closing.begin(rollout, {});
    this.#deps.metrics.count(
      "rollbook_gateway_rollouts_total",
      { event: "recovered" },
      open.length + halfClosed.length,
    );
    this.#gauge();
  }

  /** Logs the damage: a segment of the journal was moved away, maybe without knowledge of its content. */
  #tell(damaged: readonly DamagedRollout[]): void {
    for (const { rollout, missing } of damaged) {
      this.#deps.log(
        missing === undefined
          ? `rollout ${rollout} is in the journal without its beginning: the gateway leaves it there and does not continue it. Put the missing segment back and start again`
          : `rollout ${rollout} goes on, but ${callsText(missing)} missing from the journal: its artifact will say so. Put the missing segment back and start again, if there is one`,
      );
      if (missing === undefined) this.#states.tears(rollout);
      const event = missing === undefined ? "beginning-lost" : "calls-lost";
      this.#deps.metrics.count("rollbook_gateway_rollouts_total", { event });
    }
  }

  /** Rollouts that accept calls. A rollout that is being closed does not. */
  get openIds(): string[] {
    return [...this.#states.allLive()]
      .filter(({ kind }) => kind !== "closing")
      .map(({ rollout }) => rollout.id);
  }

  /** Routers that open rollouts name. */
  get namedRouters(): ReadonlySet<Digest> {
    const named = [...this.#states.allLive()].map(({ rollout }) => rollout.opening.router);
    return new Set(named.filter((router) => router !== undefined));
  }

  /** The open rollouts, for display. */
  get openRollouts(): { id: string; task: string; calls: number; openedAtMs: number; lastUsedMs: number }[] {
    return [...this.#states.allLive()].map(({ rollout: { id, opening, calls, lastUsedMs } }) => ({
      ...{ id, task: opening.task.id, calls: calls.size, openedAtMs: opening.atMs, lastUsedMs },
    }));
  }

  /** Calls without a rollout that are in progress or not sealed yet. */
  get unsealedSingles(): number {
    return this.#states.singles;
  }

  /** Opens a rollout, durably. Idempotent: repeating an identical opening is not an error. */
  async open({
    id: name,
    ...wanted
  }: WantedOpening & { id?: string }): Promise<{ id: Id; created: boolean }> {
    const id = parseId(name ?? this.#deps.newId(), "id");
    const opening = makeOpening(id, wanted, this.#defaults());
    if (this.#states.live(id) === undefined) {
      const checked = this.#deps.checkNamed(id, opening);
      if (checked !== undefined) await checked;
    }
    // No await from here to the journal: another opening of that name may have arrived during the check.
    if (this.#isOpenAlready(id, opening)) {
      await this.#deps.journal.flush();
      return { id, created: false };
    }
    // Generated names are new, so only given names are checked.
    if (name !== undefined && this.#states.get(id) === undefined && this.#deps.closed.has(id))
      throw nameTaken(id, "is closed");
    const { opened: count } = this.#states;
    if (count >= this.#deps.config.limits.openRollouts)
      throw new HttpRefusal(429, "too-many-rollouts", `${count} rollouts are open. Close some.`, {
        retry: true,
      });
    this.#start(new OpenRollout(id, opening));
    await this.#deps.journal.flush();
    return { id, created: true };
  }

  /** True if an identical opening exists. Refuses a name in use by another rollout. A rollout closed without a call
   *  frees its name. */
  #isOpenAlready(id: string, opening: OpenedEvent): boolean {
    const state = this.#states.get(id);
    switch (state?.kind) {
      case undefined:
      case "empty":
        return false;
      case "open":
      case "failed":
        if (sameOpening(state.rollout.opening, opening)) return true;
        throw new HttpRefusal(
          409,
          "rollout-exists",
          `rollout ${id} is open already, for another task, policy or worker. ${NEW_ID}`,
        );
      case "closing":
        throw nameTaken(id, "is being closed");
      case "sealed":
        throw nameTaken(id, "is closed");
      case "torn":
        throw new HttpRefusal(
          409,
          "rollout-damaged",
          `the journal has calls of a rollout ${id}, but not its beginning. ${NEW_ID}`,
        );
      default:
        return state satisfies never;
    }
  }

  /** Opens a rollout for one call without a rollout. It becomes durable together with the call. Calls `mayCostUsd` only
   *  if there is a budget. */
  openSingle(mayCostUsd: () => number): OpenRollout {
    const { singles } = this.#states;
    if (singles >= this.#deps.config.limits.sealBacklog)
      throw new HttpRefusal(
        429,
        "seal-backlog",
        `${singles} calls without a rollout are not sealed yet. Ask again in a moment, or call within a rollout.`,
        { retry: true },
      );
    const id = parseId(this.#deps.newId(), "id");
    const rollout = new OpenRollout(id, singleOpening(id, {}, this.#defaults()));
    requireRoom(rollout, this.#deps.config.limits, mayCostUsd);
    return this.#start(rollout);
  }

  /** The open rollout of that name, with room for one more call. The call must begin at once. Calls `mayCostUsd`
   *  only if there is a budget. */
  enter(id: string, mayCostUsd: () => number): OpenRollout {
    const rollout = this.#states.enterable(id);
    if (rollout === undefined) throw this.#notOpen(id);
    requireRoom(rollout, this.#deps.config.limits, mayCostUsd);
    return rollout;
  }

  isOpen(id: string): boolean {
    return this.#states.live(id) !== undefined;
  }

  /** True if this gateway can answer for the rollout: it is open here, was closed here, or is in the book. */
  knows(id: string): boolean {
    return this.#states.get(id) !== undefined || this.#deps.closed.has(id);
  }

  /** Records a decision without a call as a separate rollout, sealed at once, in the session of the open rollout
   *  `within`. Resolves when it is durable. */
  async decide<D extends Omit<DecisionToSeal, "id" | "group">>(
    decide: (id: Id) => D,
    within: string | undefined,
  ): Promise<{ id: Id; decided: D }> {
    const asking = within === undefined ? undefined : this.#states.enterable(within);
    if (within !== undefined && asking === undefined) throw this.#notOpen(within);
    const id = parseId(this.#deps.newId(), "id");
    const decided = decide(id);
    const { family, step, prompt } = decided;
    const group = asking?.opening.group ?? asking?.id;
    const artifact = await this.#deps.decisions.seal({ id, family, step, prompt, group });
    this.#closing.sealed(id, { ...artifact, calls: [], feedback: [] });
    this.#deps.metrics.count("rollbook_gateway_rollouts_total", { event: "decided" });
    return { id, decided };
  }

  /** Begins a call. Returns its number in the rollout. */
  begin(rollout: OpenRollout): number {
    return rollout.begin();
  }

  /** Withdraws a call that just began. The next call gets its number. */
  takeBack(rollout: OpenRollout): void {
    rollout.takeBack();
    this.end(rollout, rollout.started);
  }

  /** Ends a call after it is recorded, with any outcome. */
  end(rollout: OpenRollout, call: number): void {
    rollout.end(call);
    rollout.lastUsedMs = this.#deps.clock.nowMs();
    if (rollout.active > 0) return;
    rollout.freeReserved();
    if (rollout.whenQuiet.length > 0) for (const wake of rollout.whenQuiet.splice(0)) wake();
    if (isSingle(rollout)) void this.#closing.begin(rollout, {});
  }

  /** Seals the rollout. Resolves when the artifact is durable. Idempotent: a second close gives the same answer, unless
   *  it has other scores or another final state. */
  async close(id: string, closing: CloseRequest): Promise<CloseReport> {
    const state = this.#states.get(id);
    switch (state?.kind) {
      case "open":
      case "failed": {
        const { finalState: value, ...rest } = closing;
        const finalState = value === undefined ? undefined : detached(sealFinalState(value));
        return this.#closing.begin(state.rollout, { ...rest, finalState, isUrgent: true });
      }
      case "closing": {
        const report = await state.report;
        return report.content === undefined ? report : this.#closeAgain(id, closing);
      }
      case "empty":
        return state.report;
      case undefined:
      case "sealed":
      case "torn":
        return this.#closeAgain(id, closing);
      default:
        return state satisfies never;
    }
  }

  /** Answers as the first close did. The book is read only if the request has something to compare. */
  async #closeAgain(id: string, closing: CloseRequest): Promise<CloseReport> {
    const closed = await this.#feedback.closed(id);
    if (closing.scores !== undefined || closing.finalState !== undefined) {
      const [blob] = await this.#deps.sealing.look([closed.content]);
      if (blob != null)
        requireSameClosing(id, closing, openRecord(RolloutContent, blob.bytes, closed.content));
    }
    return this.#closing.reportOf(id, closed);
  }

  /** Usage of an open rollout so far. A scorer can read it before the close. */
  status(id: string): RolloutStatus {
    const rollout = this.#states.enterable(id);
    if (rollout === undefined) throw this.#notOpen(id);
    const { calls, promptTokens, completionTokens, costUsd, turns, lastRefusal, unpricedCalls } = rollout;
    const known = { calls: calls.size, promptTokens, completionTokens, costUsd };
    const usage = unpricedCalls === 0 ? known : { ...known, unpriced: unpricedCalls };
    return { id, turns, usage, ...given({ lastRefusal }) };
  }

  /** Stores the refusal of a call in that rollout. A failed closing names it. */
  refused(id: string, reason: string): void {
    const rollout = this.#states.enterable(id);
    if (rollout !== undefined) rollout.lastRefusal = reason;
  }

  /** Seals idle rollouts, and single calls that failed to seal. Resolves with the number of idle rollouts, when
   *  these and the closings in progress are done. */
  async sealIdle(): Promise<number> {
    const before = this.#deps.clock.nowMs() - this.#deps.config.rollouts.idleMs;
    const idle: Promise<unknown>[] = [];
    const underWay: Promise<unknown>[] = [];
    const failed: OpenRollout[] = [];
    for (const state of this.#states.allLive()) {
      const { rollout } = state;
      if (state.kind === "closing") underWay.push(state.report);
      else if (rollout.active > 0) continue;
      else if (Math.max(rollout.lastUsedMs, this.#startedMs) <= before)
        idle.push(this.#closing.begin(rollout, {}));
      else if (state.kind === "failed" && isSingle(rollout)) failed.push(rollout);
    }
    // A closing in progress reports its failure to its own close request.
    await Promise.all([...idle, this.#sealFailed(failed), Promise.allSettled(underWay)]);
    return idle.length;
  }

  /** Retries single calls that failed to seal; no further events can arrive for them. Tries one call, a different
   *  one each time, and all others after it succeeds. */
  async #sealFailed(singles: readonly OpenRollout[]): Promise<void> {
    if (singles.length === 0) return;
    await this.#closing.begin(singles[this.#turns++ % singles.length]!, {});
    const left = singles.filter(({ id }) => this.#states.live(id) !== undefined);
    await Promise.all(left.map((each) => this.#closing.begin(each, {})));
  }

  /** Resolves when no call is in progress: all are recorded, or lost. No other call may begin meanwhile. */
  async quiet(): Promise<void> {
    for (const { rollout } of this.#states.allLive())
      if (rollout.active > 0) await new Promise<void>((done) => rollout.whenQuiet.push(done));
  }

  /** Resolves when no sealing is in progress. */
  settle(): Promise<void> {
    return this.#closing.settle();
  }

  /** Adds an outcome, durably. Idempotent by its key. */
  async addFeedback(id: string, given: NewFeedback): Promise<{ added: boolean }> {
    const added = await this.#feedback.add(id, given);
    if (added) this.#deps.metrics.count("rollbook_gateway_feedback_total");
    return { added };
  }

  #notOpen(id: string): HttpRefusal {
    const state = this.#states.get(id);
    const isKnown = state === undefined ? this.#deps.closed.has(id) : state.kind !== "torn";
    return isKnown
      ? new HttpRefusal(503, "rollout-closed", `rollout ${id} is closed. Open another one.`)
      : unknownRollout(id);
  }

  #defaults(): Parameters<typeof makeOpening>[2] {
    const { config, clock } = this.#deps;
    return { rollouts: config.rollouts, gatewayName: this.#gatewayName, atMs: clock.nowMs() };
  }

  #start(rollout: OpenRollout): OpenRollout {
    // The journal write can fail, so it comes first: a rollout without a journal entry must not be open.
    rollout.events.push(this.#deps.journal.event(rollout.id, rollout.opening));
    this.#states.opens(rollout);
    this.#gauge();
    return rollout;
  }

  #gauge(): void {
    this.#deps.metrics.set("rollbook_gateway_open_rollouts", this.#states.opened);
  }
}

/** Advice for a client that opens rollouts itself, and for the launcher, whose ids follow from the experiment. */
const NEW_ID = "Open one with another id; `rollbook launch` does with --retry failed or another --exp.";

function nameTaken(id: string, why: string): HttpRefusal {
  return new HttpRefusal(
    409,
    "rollout-closed",
    `rollout ${id} ${why}, and takes no more calls: its recorded result stands. ${NEW_ID}`,
  );
}
