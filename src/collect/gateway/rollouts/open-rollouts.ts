/** The rollouts of a gateway: opened, called, graded, closed; by a client, by a cap, or by silence.
 *  In: requests about rollouts. Out: their state in the journal while they are open; closings.ts has them sealed.
 *  Does not speak HTTP. */
import { type Id, parseId } from "../../../base/index.ts";
import { sealFinalState } from "../../../contract/index.ts";
import type { GatewayConfig } from "../config.ts";
import {
  type ClosedRollout,
  feedbackFor,
  type Grade,
  isNewGrade,
  type Opening,
  OpenRollout,
} from "../journal/index.ts";
import { detached } from "../sealing/index.ts";
import { HttpRefusal } from "../wire/index.ts";
import {
  type CloseReport,
  type Closing,
  Closings,
  type ClosingsOptions,
  isSealed,
} from "./close-coordinator.ts";
import { callsText } from "./lost-calls.ts";
import { isSingle, makeOpening, sameOpening, singleOpening, type WantedOpening } from "./opening.ts";
import type { DamagedRollout, Recovered } from "./recover.ts";

/** How an open rollout stands. */
export interface RolloutStatus {
  readonly id: string;
  readonly turns: number;
  readonly usage: {
    readonly calls: number;
    readonly promptTokens: number;
    readonly completionTokens: number;
    readonly costUsd: number;
  };
}

export interface RolloutsOptions extends Omit<ClosingsOptions, "onClosed"> {
  readonly config: GatewayConfig;
  /** Refuses an opening whose artifact would name what the book does not hold; undefined where none is named. */
  readonly checkNamed: (id: Id, opening: Opening) => Promise<void> | undefined;
  readonly newId: () => string;
}

export class Rollouts {
  readonly #with: RolloutsOptions;
  readonly #worker: Id;
  readonly #open = new Map<string, OpenRollout>();
  /** How many of them are of single calls: in progress, waiting to be sealed, or not to be sealed so far. */
  #singles = 0;
  /** Turns in trying again what could not be sealed. */
  #turns = 0;
  /** Of which the journal has calls, and not how they began. */
  readonly #torn = new Set<string>();
  readonly #closings: Closings;

  constructor(options: RolloutsOptions) {
    this.#with = options;
    this.#worker = parseId(options.config.worker, "worker");
    this.#closings = new Closings({ ...options, onClosed: (rollout) => this.#drop(rollout) });
  }

  /** Takes up what a gateway left that died: rollouts of single calls are sealed, the others go on. */
  async adopt({ open, halfClosed, sealed, damaged }: Recovered): Promise<void> {
    const { closed: known, journal } = this.#with;
    this.#tell(damaged);
    for (const rollout of open) this.#keep(rollout);
    for (const { rollout } of halfClosed) this.#keep(rollout);
    await this.#closings.sign(sealed.filter(({ toSign }) => toSign).map(({ closed }) => closed));
    for (const { id, closed } of sealed) known.add(id, closed);
    known.filled();
    for (const { places } of sealed) journal.release(places);
    for (const { rollout, closed } of halfClosed) {
      const { ending, scores, finalState: digest } = closed;
      void this.#closings.begin(rollout, { ending, scores, finalState: digest && { digest } });
    }
    for (const rollout of open) if (isSingle(rollout)) void this.#closings.begin(rollout, {});
    // One that cannot be sealed stays open, is tried again by and by, and keeps no other from starting.
    await this.settle();
    this.#with.metrics.count(
      "rollbook_gateway_rollouts_total",
      { event: "recovered" },
      open.length + halfClosed.length,
    );
    this.#gauge();
  }

  /** Somebody moved a segment of the journal away, and may not know what was in it. */
  #tell(damaged: readonly DamagedRollout[]): void {
    for (const { rollout, missing } of damaged) {
      this.#with.log(
        missing === undefined
          ? `rollout ${rollout} is in the journal without its beginning: it is left there, and not taken up. Put the missing segment back and start again`
          : `rollout ${rollout} goes on, but ${callsText(missing)} missing from the journal: its artifact will say so. Put the missing segment back and start again, if there is one`,
      );
      if (missing === undefined) this.#torn.add(rollout);
      const event = missing === undefined ? "beginning-lost" : "calls-lost";
      this.#with.metrics.count("rollbook_gateway_rollouts_total", { event });
    }
  }

  get openIds(): string[] {
    return [...this.#open.keys()];
  }

  /** Calls without a rollout that are in progress or not sealed yet. */
  get unsealedSingles(): number {
    return this.#singles;
  }

  /** Opens a rollout, durably. Opening one again in the same words is no error, and one that was closed without a call
   *  has left its name to others. */
  async open({
    id: given,
    ...wanted
  }: WantedOpening & { id?: string }): Promise<{ id: Id; created: boolean }> {
    const id = parseId(given ?? this.#with.newId(), "id");
    const opening = makeOpening(id, wanted, this.#defaults());
    if (!this.#open.has(id)) {
      const checked = this.#with.checkNamed(id, opening);
      if (checked !== undefined) await checked;
    }
    // From here to the journal nothing is waited for: another opening of that name may have come meanwhile.
    const known = this.#open.get(id);
    if (known !== undefined) {
      if (known.closing !== undefined)
        throw new HttpRefusal(409, "rollout-closed", `rollout ${id} is being closed. Choose another id.`);
      if (sameOpening(known.opening, opening)) {
        await this.#with.journal.flush();
        return { id, created: false };
      }
      throw new HttpRefusal(
        409,
        "rollout-exists",
        `rollout ${id} is open already, for something else. Choose another id.`,
      );
    }
    // A name of our own making is new.
    if (given !== undefined && this.#with.closed.get(id) !== undefined)
      throw new HttpRefusal(409, "rollout-closed", `rollout ${id} is closed. Choose another id.`);
    if (this.#torn.has(id))
      throw new HttpRefusal(
        409,
        "rollout-damaged",
        `the journal has calls of a rollout ${id}, and not how it began. Choose another id.`,
      );
    const count = this.#open.size - this.#singles;
    if (count >= this.#with.config.limits.openRollouts)
      throw new HttpRefusal(429, "too-many-rollouts", `${count} rollouts are open. Close some.`, {
        retry: true,
      });
    this.#start(id, opening);
    await this.#with.journal.flush();
    return { id, created: true };
  }

  /** A rollout for one call that belongs to none. Durable together with the call. */
  openSingle(): OpenRollout {
    if (this.#singles >= this.#with.config.limits.sealBacklog)
      throw new HttpRefusal(
        429,
        "seal-backlog",
        `${this.#singles} calls without a rollout are not sealed yet. Ask again in a moment, or call within a rollout.`,
        { retry: true },
      );
    const id = parseId(this.#with.newId(), "id");
    return this.#start(id, singleOpening(id, {}, this.#defaults()));
  }

  /** The open rollout of that name, ready for one more call, which has to begin at once. `mayCostUsd` is asked where there
   *  is a budget. */
  enter(id: string, mayCostUsd: () => number): OpenRollout {
    const rollout = this.#open.get(id);
    if (rollout === undefined || rollout.closing !== undefined) throw this.#notOpen(id);
    const { maxTurns, budgetUsd } = rollout.opening;
    if (maxTurns !== undefined && rollout.turns >= maxTurns) {
      rollout.capped ??= "turns";
      throw new HttpRefusal(429, "turn-cap", `rollout ${id} has used its ${maxTurns} turns.`);
    }
    if (budgetUsd === undefined) return rollout;
    const { spentUsd, reservedUsd } = rollout;
    if (spentUsd >= budgetUsd) {
      rollout.capped ??= "budget";
      throw new HttpRefusal(402, "budget-cap", `rollout ${id} has spent its ${budgetUsd} USD.`);
    }
    if (spentUsd + reservedUsd >= budgetUsd)
      throw new HttpRefusal(
        429,
        "budget-reserved",
        `what is left of the ${budgetUsd} USD of rollout ${id} is reserved for calls in progress. Wait for one of them.`,
        { retry: true },
      );
    rollout.reserve(mayCostUsd());
    return rollout;
  }

  isOpen(id: string): boolean {
    return this.#open.has(id);
  }

  /** A call begins: its number in the rollout. */
  begin(rollout: OpenRollout): number {
    return rollout.begin();
  }

  /** A call that was just begun is none: its number is the next one's. */
  takeBack(rollout: OpenRollout): void {
    rollout.takeBack();
    this.end(rollout, rollout.started);
  }

  /** A call is recorded, whatever became of it. */
  end(rollout: OpenRollout, call: number): void {
    rollout.end(call);
    rollout.lastUsedMs = this.#with.clock.nowMs();
    if (rollout.active > 0) return;
    rollout.freeReserved();
    if (rollout.whenQuiet.length > 0) for (const wake of rollout.whenQuiet.splice(0)) wake();
    if (isSingle(rollout) && rollout.closing === undefined) void this.#closings.begin(rollout, {});
  }

  /** Seals the rollout. Resolves when the artifact is durable; closing twice gives the same answer. */
  close(id: string, closing: Closing): Promise<CloseReport> {
    const rollout = this.#open.get(id);
    if (rollout === undefined) {
      const closed = this.#closings.get(id);
      return closed === undefined
        ? Promise.reject(unknownRollout(id))
        : Promise.resolve(this.#closings.reportOf(id, closed));
    }
    if (rollout.closing !== undefined) return rollout.closing as Promise<CloseReport>;
    const { finalState: value, ...rest } = closing;
    const finalState = value === undefined ? undefined : detached(sealFinalState(value));
    return this.#closings.begin(rollout, { ...rest, finalState }, { isUrgent: true });
  }

  /** What an open rollout has used so far: known before it is scored. */
  status(id: string): RolloutStatus {
    const rollout = this.#open.get(id);
    if (rollout === undefined || rollout.closing !== undefined) throw this.#notOpen(id);
    const { calls, promptTokens, completionTokens, costUsd, turns } = rollout;
    return { id, turns, usage: { calls: calls.size, promptTokens, completionTokens, costUsd } };
  }

  /** Seals what has been silent for too long, and single calls that could not be sealed. Resolves, with the number of the
   *  silent ones, when they and those under way are sealed. */
  async sealIdle(): Promise<number> {
    const before = this.#with.clock.nowMs() - this.#with.config.rollouts.idleMs;
    const idle: Promise<unknown>[] = [];
    const underWay: Promise<unknown>[] = [];
    const failed: OpenRollout[] = [];
    for (const rollout of this.#open.values()) {
      if (rollout.closing !== undefined) underWay.push(rollout.closing);
      else if (rollout.active > 0) continue;
      else if (rollout.lastUsedMs <= before) idle.push(this.#closings.begin(rollout, {}));
      else if (isSingle(rollout)) failed.push(rollout);
    }
    // Whoever closed them hears what went wrong with the others.
    await Promise.all([...idle, this.#sealFailed(failed), Promise.allSettled(underWay)]);
    return idle.length;
  }

  /** Nothing more will happen in single calls: one is tried, each time another, and once one is sealed all the others. */
  async #sealFailed(singles: readonly OpenRollout[]): Promise<void> {
    if (singles.length === 0) return;
    await this.#closings.begin(singles[this.#turns++ % singles.length]!, {});
    await Promise.all(singles.map((each) => this.#closings.begin(each, {})));
  }

  /** Resolves when no call is in progress: all are recorded, or lost. Nobody may begin another meanwhile. */
  async quiet(): Promise<void> {
    for (const rollout of this.#open.values())
      if (rollout.active > 0) await new Promise<void>((done) => rollout.whenQuiet.push(done));
  }

  /** Resolves when nothing is being sealed any more. */
  settle(): Promise<void> {
    return this.#closings.settle();
  }

  /** Adds an outcome, durably. The same key again changes nothing. */
  async grade(id: string, grade: Omit<Grade, "kind" | "atMs">): Promise<{ added: boolean }> {
    const { journal, clock, metrics } = this.#with;
    const event: Grade = { kind: "graded", ...grade, atMs: clock.nowMs() };
    const open = this.#open.get(id);
    // A rollout that is just being sealed takes its grades along; wait, and grade the artifact. Where there will be
    // none, whoever closes it hears of that.
    if (open?.closing !== undefined) {
      await Promise.allSettled([open.closing]);
      return this.grade(id, grade);
    }
    const added =
      open === undefined
        ? await this.#gradeClosed(id, event)
        : isNewGrade(id, event, { grades: open.grades, hasCall: (call) => open.hasCall(call) });
    if (open !== undefined) {
      if (added) {
        open.events.push(journal.event(open.id, event));
        open.addGrade(event);
      }
      // Also for one that is there already: whoever brought it may still be waiting for the disk.
      await journal.flush();
    }
    if (added) metrics.count("rollbook_gateway_feedback_total");
    return { added };
  }

  async #gradeClosed(id: string, event: Grade): Promise<boolean> {
    const { store, closed: known } = this.#with;
    const before = this.#gradable(id);
    const isNew = isNewGrade(id, event, { ...before, hasCall: (call) => before.calls.includes(call) });
    if (!isNew) {
      await store.flush();
      return false;
    }
    const after = { ...before, grades: [...before.grades, event] };
    for (const { kind, bytes } of feedbackFor(before, event)) store.put(kind, bytes);
    // Whoever brings it again now waits for the same disk; it is kept as known once it is there.
    known.show(id, after);
    try {
      await store.flush();
    } catch (error) {
      known.hide(id);
      throw error;
    }
    known.add(id, after);
    await known.saved();
    return true;
  }

  #gradable(id: string): ClosedRollout {
    const closed = this.#closings.get(id);
    if (closed === undefined) throw unknownRollout(id);
    if (isSealed(closed)) return closed;
    throw new HttpRefusal(
      409,
      "empty-rollout",
      `rollout ${id} was closed without a call: there is no artifact to add an outcome to.`,
    );
  }

  #notOpen(id: string): HttpRefusal {
    if (this.#open.has(id) || this.#closings.get(id) !== undefined)
      return new HttpRefusal(503, "rollout-closed", `rollout ${id} is closed. Open another one.`);
    return unknownRollout(id);
  }

  #defaults(): Parameters<typeof makeOpening>[2] {
    const { config, clock } = this.#with;
    return { rollouts: config.rollouts, worker: this.#worker, atMs: clock.nowMs() };
  }

  #start(id: Id, opening: Opening): OpenRollout {
    const rollout = new OpenRollout(id, opening);
    // First what can fail: a rollout that the journal does not know must not be open.
    rollout.events.push(this.#with.journal.event(id, opening));
    this.#keep(rollout);
    this.#closings.reopened(id);
    this.#gauge();
    return rollout;
  }

  #keep(rollout: OpenRollout): void {
    this.#open.set(rollout.id, rollout);
    if (isSingle(rollout)) this.#singles++;
  }

  #drop(rollout: OpenRollout): void {
    this.#open.delete(rollout.id);
    if (isSingle(rollout)) this.#singles--;
    this.#gauge();
  }

  #gauge(): void {
    this.#with.metrics.set("rollbook_gateway_open_rollouts", this.#open.size - this.#singles);
  }
}

function unknownRollout(id: string): HttpRefusal {
  const name = JSON.stringify(id.slice(0, 80));
  return new HttpRefusal(
    404,
    "unknown-rollout",
    `no rollout is called ${name}. Open it with POST /v1/rollouts.`,
  );
}
