/** The rollouts of a gateway: opened, called, graded, closed, sealed; by a client, by a cap, or by silence.
 *  In: requests about rollouts. Out: their state in the journal while they are open, and sealed artifacts in the book,
 *  made from the journal. Does not speak HTTP. */
import { canonicalize, type Json } from "../../base/canonical-json.ts";
import type { Clock } from "../../base/clock.ts";
import { type Digest, digestJson } from "../../base/digest.ts";
import { type Id, parseId } from "../../base/ids.ts";
import { sealFinalState } from "../../contract/final-state.ts";
import {
  type Ending,
  Feedback,
  type PublicKey,
  type Receipt,
  RolloutEvent,
  type Sealed,
  type SealedBlob,
  type SealedRollout,
  type Signer,
  seal,
} from "../../contract/index.ts";
import type { BlobStore } from "../../store/index.ts";
import { makeSealer, type Sealer } from "../../store/sealer.ts";
import { type Admit, sealReceipt } from "../admission.ts";
import { newRevisions } from "../revision-records.ts";
import type { GatewayConfig } from "./config.ts";
import { eventBytes, type Journal } from "./journal.ts";
import type { Metrics } from "./metrics.ts";
import { type EventOf, type Grade, type Opening, OpenRollout } from "./open-rollout.ts";
import type { Recorder } from "./recorder.ts";
import type { ClosedRollout, Recovered } from "./recover.ts";
import { HttpRefusal } from "./refusal.ts";
import { RolloutRecord } from "./rollout-record.ts";
import { endingOf, sealOpenRollout } from "./seal-rollout.ts";

export interface CloseReport {
  readonly id: string;
  readonly ending: Ending;
  readonly calls: number;
  /** Absent if there was no call, and so nothing to seal. */
  readonly content?: Digest;
  readonly envelope?: Digest;
  readonly signedBy?: PublicKey;
  /** What admission said, where there is one. */
  readonly receipt?: Digest;
}

export interface Closing {
  readonly ending?: Ending | undefined;
  readonly scores?: EventOf<"closed">["scores"] | undefined;
  readonly finalState?: Json | undefined;
}

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

/** Closed rollouts remembered for feedback by id; older ones are named by their content digest. */
const REMEMBERED = 100_000;

export class Rollouts {
  readonly #config: GatewayConfig;
  readonly #store: Pick<BlobStore, "put" | "flush">;
  readonly #journal: Journal;
  readonly #recorder: Recorder;
  readonly #sealer: Sealer;
  readonly #signer: Signer | undefined;
  readonly #clock: Clock;
  readonly #newId: () => string;
  readonly #metrics: Metrics;
  readonly #admit: Admit | undefined;
  readonly #worker: Id;
  readonly #open = new Map<string, OpenRollout>();
  readonly #closed = new Map<string, ClosedRollout>();
  readonly #sealing = new Set<Promise<unknown>>();
  /** Revisions whose records this gateway has sealed. */
  readonly #revisions = new Set<string>();

  constructor(options: {
    config: GatewayConfig;
    store: Pick<BlobStore, "put" | "flush">;
    journal: Journal;
    recorder: Recorder;
    signer: Signer | undefined;
    clock: Clock;
    newId: () => string;
    metrics: Metrics;
    admit?: Admit | undefined;
  }) {
    this.#config = options.config;
    this.#store = options.store;
    this.#journal = options.journal;
    this.#recorder = options.recorder;
    this.#signer = options.signer;
    this.#sealer = makeSealer(options.store, options.signer);
    this.#clock = options.clock;
    this.#newId = options.newId;
    this.#metrics = options.metrics;
    this.#admit = options.admit;
    this.#worker = parseId(options.config.worker, "worker");
  }

  /** Takes up what a gateway left that died: rollouts of single calls are sealed, the others go on. */
  async adopt({ open, halfClosed, closed, unsigned }: Recovered): Promise<void> {
    for (const [id, each] of closed) this.#remember(id, each);
    for (const rollout of open) this.#open.set(rollout.id, rollout);
    for (const { rollout } of halfClosed) this.#open.set(rollout.id, rollout);
    await Promise.all(unsigned.map((digest) => this.#sealer.add({ envelope: { digest }, blobs: [] })));
    const closings = [
      ...halfClosed.map(({ rollout, closed: { ending, scores, finalState } }) =>
        this.#begin(rollout, { ending, scores, finalState }),
      ),
      ...open.filter(isSingle).map(({ id }) => this.close(id, {})),
    ];
    // One that cannot be sealed stays open, is tried again when it has been idle, and keeps no other from starting.
    for (const closing of closings) this.#background(closing);
    await this.settle();
    this.#metrics.count(
      "rollbook_gateway_rollouts_total",
      { event: "recovered" },
      open.length + halfClosed.length,
    );
    this.#gauge();
  }

  get openIds(): string[] {
    return [...this.#open.keys()];
  }

  /** Opens a rollout, durably. Opening one again in the same words is no error. */
  async open(
    wanted: Partial<Omit<Opening, "kind" | "worker" | "atMs">> & { id?: string },
  ): Promise<{ id: Id; created: boolean }> {
    const id = parseId(wanted.id ?? this.#newId(), "id");
    const opening = this.#opening(id, wanted);
    const known = this.#open.get(id);
    if (known !== undefined) {
      if (sameOpening(known.opening, opening)) return { id, created: false };
      throw new HttpRefusal(
        409,
        "rollout-exists",
        `rollout ${id} is open already, for something else. Choose another id.`,
      );
    }
    if (this.#closed.has(id))
      throw new HttpRefusal(409, "rollout-closed", `rollout ${id} is closed. Choose another id.`);
    if (this.#open.size >= this.#config.limits.openRollouts)
      throw new HttpRefusal(429, "too-many-rollouts", `${this.#open.size} rollouts are open. Close some.`, {
        retry: true,
      });
    this.#start(id, opening);
    await this.#journal.flush();
    return { id, created: true };
  }

  /** A rollout for one call that belongs to none. Durable together with the call. */
  openSingle(): OpenRollout {
    const id = parseId(this.#newId(), "id");
    return this.#start(id, { ...this.#opening(id, {}), task: { id: SINGLE_TASK } });
  }

  /** The open rollout of that name, ready for one more call. */
  enter(id: string): OpenRollout {
    const rollout = this.#open.get(id);
    if (rollout === undefined || rollout.closing !== undefined) throw this.#notOpen(id);
    const { maxTurns, budgetUsd } = rollout.opening;
    if (maxTurns !== undefined && rollout.turns >= maxTurns) {
      rollout.capped ??= "turns";
      throw new HttpRefusal(429, "turn-cap", `rollout ${id} has used its ${maxTurns} turns.`);
    }
    if (budgetUsd !== undefined && rollout.costUsd >= budgetUsd) {
      rollout.capped ??= "budget";
      throw new HttpRefusal(402, "budget-cap", `rollout ${id} has spent its ${budgetUsd} USD.`);
    }
    return rollout;
  }

  isOpen(id: string): boolean {
    return this.#open.has(id);
  }

  /** A call begins: its number in the rollout. */
  begin(rollout: OpenRollout): number {
    rollout.active++;
    return rollout.started++;
  }

  /** A call is recorded, whatever became of it. */
  end(rollout: OpenRollout): void {
    rollout.active--;
    rollout.lastUsedMs = this.#clock.nowMs();
    if (rollout.active > 0) return;
    for (const wake of rollout.whenQuiet.splice(0)) wake();
    if (isSingle(rollout)) this.#background(this.close(rollout.id, {}));
  }

  /** Seals the rollout. Resolves when the artifact is durable; closing twice gives the same answer. */
  close(id: string, closing: Closing): Promise<CloseReport> {
    const closed = this.#closed.get(id);
    if (closed !== undefined) return Promise.resolve(this.#reportOf(id, closed));
    const rollout = this.#open.get(id);
    if (rollout === undefined)
      return Promise.reject(
        new HttpRefusal(404, "unknown-rollout", `no rollout is called ${printable(id)}.`),
      );
    if (rollout.closing !== undefined) return rollout.closing as Promise<CloseReport>;
    const { finalState: value, ...rest } = closing;
    const state = value === undefined ? undefined : sealFinalState(value);
    if (state !== undefined) this.#store.put(state.kind, state.bytes);
    return this.#begin(rollout, { ...rest, finalState: state?.digest });
  }

  /** What an open rollout has used so far: known before it is scored. */
  status(id: string): RolloutStatus {
    const rollout = this.#open.get(id);
    if (rollout === undefined || rollout.closing !== undefined) throw this.#notOpen(id);
    const { calls, promptTokens, completionTokens, costUsd, turns } = rollout;
    return { id, turns, usage: { calls: calls.size, promptTokens, completionTokens, costUsd } };
  }

  /** Seals what has been silent for too long. Resolves, with their number, when they and those under way are sealed. */
  async sealIdle(): Promise<number> {
    const before = this.#clock.nowMs() - this.#config.rollouts.idleMs;
    const idle: Promise<unknown>[] = [];
    const underWay: Promise<unknown>[] = [];
    for (const rollout of this.#open.values()) {
      if (rollout.closing !== undefined) underWay.push(rollout.closing);
      else if (rollout.active === 0 && rollout.lastUsedMs <= before) idle.push(this.close(rollout.id, {}));
    }
    // Whoever closed them hears what went wrong with the others.
    await Promise.all([...idle, Promise.allSettled(underWay)]);
    return idle.length;
  }

  /** Resolves when nothing is being sealed any more. */
  async settle(): Promise<void> {
    while (this.#sealing.size > 0) await Promise.allSettled(this.#sealing);
  }

  /** Adds an outcome, durably. The same key again changes nothing. */
  async grade(id: string, grade: Omit<Grade, "kind" | "atMs">): Promise<{ added: boolean }> {
    const event: Grade = { kind: "graded", ...grade, atMs: this.#clock.nowMs() };
    const open = this.#open.get(id);
    const closed = this.#closed.get(id);
    if (open === undefined && closed === undefined)
      throw new HttpRefusal(404, "unknown-rollout", `no rollout is called ${printable(id)}.`);
    // A rollout that is just being sealed takes its grades along; wait, and grade the artifact.
    if (open?.closing !== undefined) {
      await open.closing;
      return this.grade(id, grade);
    }
    const calls = open === undefined ? closed!.calls : [...Array(open.started).keys()];
    if (grade.call !== undefined && !calls.includes(grade.call))
      throw new HttpRefusal(404, "unknown-call", `rollout ${id} has no call ${grade.call}.`);
    const grades = open?.grades ?? closed!.grades;
    const known = grades.find((each) => each.idempotencyKey === grade.idempotencyKey);
    if (known !== undefined) {
      if (known.name === grade.name && known.value === grade.value && known.call === grade.call)
        return { added: false };
      throw new HttpRefusal(
        409,
        "key-reused",
        `the idempotency key ${printable(grade.idempotencyKey)} was used for another outcome.`,
      );
    }
    grades.push(event);
    if (open === undefined) {
      for (const { kind, bytes } of feedbackOf(closed!, event)) this.#store.put(kind, bytes);
      await this.#store.flush();
    } else {
      open.events.push(this.#journal.event(open.id, event));
      await this.#journal.flush();
    }
    this.#metrics.count("rollbook_gateway_feedback_total");
    return { added: true };
  }

  #notOpen(id: string): HttpRefusal {
    if (this.#open.has(id) || this.#closed.has(id))
      return new HttpRefusal(503, "rollout-closed", `rollout ${id} is closed. Open another one.`);
    return new HttpRefusal(
      404,
      "unknown-rollout",
      `no rollout is called ${printable(id)}. Open it with POST /v1/rollouts.`,
    );
  }

  #begin(rollout: OpenRollout, closing: ToClose): Promise<CloseReport> {
    const report = this.#close(rollout, closing);
    rollout.closing = report;
    // What could not be closed is open: whoever asks again may have more luck.
    report.catch(() => {
      rollout.closing = undefined;
    });
    return report;
  }

  async #close(rollout: OpenRollout, closing: ToClose): Promise<CloseReport> {
    if (rollout.active > 0) await new Promise<void>((done) => rollout.whenQuiet.push(done));
    const record = await this.#recordOf(rollout);
    const { finalState } = closing;
    const told = {
      ending: closing.ending ?? endingOf(record, rollout.capped),
      scores: closing.scores ?? [],
      ...(finalState === undefined ? {} : { finalState }),
    };
    const { ending } = told;
    const endedAtMs = this.#clock.nowMs();
    const sealed = sealOpenRollout(rollout, record, { ...told, worker: this.#worker, endedAtMs });
    if (sealed === undefined) {
      rollout.events.push(this.#journal.event(rollout.id, { kind: "closed", ...told, atMs: endedAtMs }));
      await this.#journal.flush();
      this.#forget(rollout, "empty");
      return { id: rollout.id, ending, calls: 0 };
    }
    const judged = await this.#judge(sealed, rollout);
    this.#putEvent(rollout.id, rollout.opening);
    // The event first: one without its artifact says that the sealing has to be done again.
    this.#putEvent(rollout.id, {
      ...{ kind: "closed", ...told, atMs: endedAtMs, envelope: sealed.envelope.digest },
      ...(judged === undefined ? {} : { receipt: judged.receipt.digest }),
      ...(this.#signer === undefined ? {} : { signer: this.#signer.publicKey }),
    });
    const calls = [...rollout.calls.keys()].sort((a, b) => a - b);
    const closed: ClosedRollout = {
      ...{ content: sealed.content.digest, envelope: sealed.envelope.digest, ending, calls },
      ...(judged === undefined ? {} : { receipt: judged.receipt.digest }),
      grades: rollout.grades,
    };
    const said = [...rollout.grades.flatMap((grade) => feedbackOf(closed, grade)), ...(judged?.blobs ?? [])];
    const revisions = newRevisions(sealed.content.record.streams, this.#revisions);
    await this.#sealer.add({
      envelope: sealed.envelope,
      // The envelope stays last: where it is, everything is.
      blobs: [...revisions, ...sealed.blobs.slice(0, -1), ...said, sealed.envelope],
      ...(judged === undefined ? {} : { others: [judged.receipt.digest] }),
    });
    this.#remember(rollout.id, closed);
    this.#forget(rollout, "sealed");
    return this.#reportOf(rollout.id, closed);
  }

  /** Reads the calls back and puts them into the book, in order; calls in progress have their turns in between. */
  async #recordOf(rollout: OpenRollout): Promise<RolloutRecord> {
    const record = new RolloutRecord();
    if (rollout.calls.size > 0) await this.#journal.flush();
    const marks = [];
    for (const [, place] of [...rollout.calls].sort(([a], [b]) => a - b)) {
      const entry = this.#journal.read(place);
      const drift = this.#recorder.add(record, entry);
      this.#metrics.count("rollbook_gateway_drift_total", { drift });
      marks.push(...entry.deliveries);
      await new Promise(setImmediate);
    }
    // What nobody marked before a crash stays unknown, unless a prompt proved it.
    for (const { call, delivery } of [...marks, ...rollout.pendingDeliveries]) record.mark(call, delivery);
    return record;
  }

  #putEvent(rollout: Id, event: RolloutEvent["event"]): void {
    this.#store.put(RolloutEvent.kind, eventBytes(rollout, event));
  }

  async #judge(
    { content, envelope }: SealedRollout,
    { opening }: OpenRollout,
  ): Promise<{ receipt: Sealed<Receipt>; blobs: readonly SealedBlob[] } | undefined> {
    if (this.#admit === undefined) return undefined;
    const nowMs = this.#clock.nowMs();
    const subject = content.digest;
    const admission = await this.#admit({
      ...{ content: content.record, envelope: envelope.record, digest: subject, nowMs },
    });
    const receipt = sealReceipt(admission, {
      ...{ subject, atMs: nowMs, worker: envelope.record.worker, claim: opening.run?.claim },
    });
    return { receipt, blobs: [...(admission.records ?? []), receipt] };
  }

  #opening(id: string, wanted: Partial<Omit<Opening, "kind" | "worker" | "atMs">>): Opening {
    const { environment, dataSource, maxTurns, budgetUsd } = this.#config.rollouts;
    const { id: _, ...given } = wanted as { id?: string };
    return {
      kind: "opened",
      worker: this.#worker,
      environment: environment as Opening["environment"],
      task: { id: UNNAMED_TASK },
      seed: BigInt(`0x${digestJson("rollbook.gateway-seed.v1", id).slice(7, 23)}`),
      dataSource,
      ...(maxTurns === undefined ? {} : { maxTurns }),
      ...(budgetUsd === undefined ? {} : { budgetUsd }),
      ...given,
      atMs: this.#clock.nowMs(),
    };
  }

  #start(id: Id, opening: Opening): OpenRollout {
    const rollout = new OpenRollout(id, opening);
    this.#open.set(id, rollout);
    rollout.events.push(this.#journal.event(id, opening));
    this.#gauge();
    return rollout;
  }

  #forget(rollout: OpenRollout, event: string): void {
    this.#open.delete(rollout.id);
    this.#journal.release(rollout.calls.values());
    this.#journal.release(rollout.events);
    this.#metrics.count("rollbook_gateway_rollouts_total", { event });
    this.#gauge();
  }

  #remember(id: string, closed: ClosedRollout): void {
    this.#closed.set(id, closed);
    if (this.#closed.size <= REMEMBERED) return;
    for (const oldest of this.#closed.keys()) {
      this.#closed.delete(oldest);
      return;
    }
  }

  #reportOf(id: string, { content, envelope, ending, calls, receipt }: ClosedRollout): CloseReport {
    const signedBy = this.#signer?.publicKey;
    return {
      id,
      ending,
      calls: calls.length,
      content,
      envelope,
      ...(signedBy === undefined ? {} : { signedBy }),
      ...(receipt === undefined ? {} : { receipt }),
    };
  }

  #background(work: Promise<unknown>): void {
    const done: Promise<unknown> = work
      .catch(() => this.#metrics.count("rollbook_gateway_record_failures_total"))
      .finally(() => this.#sealing.delete(done));
    this.#sealing.add(done);
  }

  #gauge(): void {
    this.#metrics.set("rollbook_gateway_open_rollouts", this.#open.size);
  }
}

/** A closing as the journal knows it: the final state is a blob already. */
type ToClose = Omit<Closing, "finalState"> & { readonly finalState?: Digest | undefined };

/** None for a call that was begun and never recorded: a crash took it, and its grade has no subject. */
function feedbackOf(
  { content, calls }: ClosedRollout,
  { kind: _, call, ...rest }: Grade,
): Sealed<Feedback>[] {
  const number = call === undefined ? -1 : calls.indexOf(call);
  if (call !== undefined && number < 0) return [];
  return [seal(Feedback, { subject: content, ...(call === undefined ? {} : { call: number }), ...rest })];
}

const UNNAMED_TASK = parseId("unnamed");
const SINGLE_TASK = parseId("single-call");

function isSingle({ opening }: OpenRollout): boolean {
  return opening.task.id === SINGLE_TASK;
}

function sameOpening(a: Opening, b: Opening): boolean {
  const text = (each: Opening) => canonicalize({ ...each, seed: String(each.seed), atMs: 0 });
  return text(a) === text(b);
}

function printable(id: string): string {
  return JSON.stringify(id.slice(0, 80));
}
