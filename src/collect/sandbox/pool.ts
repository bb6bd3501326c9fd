/** Shares a fixed number of slots among callers, first come first served.
 *  In: an engine and a number of workers. Out: a Sandbox. A slot that throws is replaced before the next task. If that
 *  fails, the pool tries again when a task finds no free slot.
 *  The caller of the failed task gets the typed error and decides about a retry. */
import { RollbookError } from "../../base/index.ts";
import {
  checkTask,
  type ExecResult,
  type Sandbox,
  type SandboxEngine,
  type SandboxTask,
  type Slot,
} from "./sandbox.ts";

export async function openPool(engine: SandboxEngine, workers: number): Promise<Sandbox> {
  if (!Number.isSafeInteger(workers) || workers < 1)
    throw new RollbookError("bad-sandbox-workers", { workers }, `workers is ${workers}; give at least 1.`);
  const pool = new Pool(engine, workers);
  try {
    await pool.fill();
  } catch (error) {
    await pool.close();
    throw error;
  }
  return {
    engine: engine.name,
    runs: engine.runs,
    covers: engine.covers,
    exec: async (program, files = {}, limits = {}) => {
      if (!engine.runs.has(program.kind)) throw unsupported(engine, program.kind);
      return pool.exec(checkTask(program, files, limits));
    },
    close: () => pool.close(),
  };
}

class Pool {
  readonly #engine: SandboxEngine;
  readonly #workers: number;
  readonly #free: Slot[] = [];
  readonly #busy = new Set<Slot>();
  readonly #waiting: { resolve(slot: Slot): void; reject(error: unknown): void }[] = [];
  /** Number of slots that were lost and not replaced yet. Free, busy and lost slots, and those that open, add up to
   *  `#workers`. */
  #lost = 0;
  /** Slots that are being replaced. Never rejects. */
  readonly #opening = new Set<Promise<void>>();
  #closing: Promise<void> | undefined;

  constructor(engine: SandboxEngine, workers: number) {
    this.#engine = engine;
    this.#workers = workers;
  }

  async fill(): Promise<void> {
    for (let i = 0; i < this.#workers; i++) this.#free.push(await this.#engine.openSlot());
  }

  async exec(task: SandboxTask): Promise<ExecResult> {
    const slot = await this.#take();
    let result: ExecResult;
    try {
      result = await slot.exec(task);
    } catch (error) {
      await this.#replace(slot);
      throw this.#closing === undefined ? error : closed(error);
    }
    this.#give(slot);
    return result;
  }

  close(): Promise<void> {
    this.#closing ??= this.#shut();
    return this.#closing;
  }

  async #shut(): Promise<void> {
    for (const { reject } of this.#waiting.splice(0)) reject(closed());
    const slots = [...this.#free.splice(0), ...this.#busy];
    const ends = await Promise.allSettled(slots.map((slot) => slot.close()));
    // A slot that opens meanwhile closes itself.
    await Promise.all(this.#opening);
    await this.#engine.close();
    for (const end of ends) if (end.status === "rejected") throw end.reason;
  }

  #take(): Promise<Slot> {
    if (this.#closing !== undefined) return Promise.reject(closed());
    const slot = this.#free.pop();
    if (slot !== undefined) {
      this.#busy.add(slot);
      return Promise.resolve(slot);
    }
    return new Promise((resolve, reject) => {
      this.#waiting.push({ resolve, reject });
      if (this.#lost === 0) return;
      this.#lost--;
      void this.#open();
    });
  }

  #give(slot: Slot): void {
    if (this.#closing !== undefined) return;
    this.#busy.delete(slot);
    const next = this.#waiting.shift();
    if (next === undefined) {
      this.#free.push(slot);
      return;
    }
    this.#busy.add(slot);
    next.resolve(slot);
  }

  async #replace(slot: Slot): Promise<void> {
    if (this.#closing === undefined) await this.#open(slot);
  }

  /** Opens a slot in place of a lost one, for the first waiting caller. If this fails and no slot is left, every
   *  waiting caller gets the error. Otherwise the callers wait for the other slots, and the next one tries again. */
  #open(dead?: Slot): Promise<void> {
    const opening = this.#openOne(dead).finally(() => this.#opening.delete(opening));
    this.#opening.add(opening);
    return opening;
  }

  async #openOne(dead: Slot | undefined): Promise<void> {
    try {
      await dead?.close();
      const slot = await this.#engine.openSlot();
      if (this.#closing === undefined) this.#give(slot);
      else await slot.close();
    } catch (error) {
      this.#lost++;
      if (this.#lost === this.#workers) for (const { reject } of this.#waiting.splice(0)) reject(error);
    } finally {
      if (dead !== undefined) this.#busy.delete(dead);
    }
  }
}

function unsupported(engine: SandboxEngine, kind: string): RollbookError {
  const runs = [...engine.runs].join(", ");
  return new RollbookError(
    "sandbox-unsupported-program",
    { engine: engine.name, kind },
    `the ${engine.name} engine does not run ${kind} programs here (it runs ${runs}). Choose another engine.`,
  );
}

function closed(cause?: unknown): RollbookError {
  return new RollbookError("sandbox-closed", {}, "the sandbox was closed while this task waited or ran.", {
    cause,
  });
}
