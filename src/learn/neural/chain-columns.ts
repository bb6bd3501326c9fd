/** Decisions as columns, filled chain by chain: choice, reward, successor, selectable arms, task.
 *  In: the rows of one chain at a time, in the order of their steps; chains in any order. Out: columns sorted by chain,
 *  about 30 bytes a row, and the source of each row. Does not keep states. */
import { compareUtf8, GrowingColumn, plural, RollbookError } from "../../base/index.ts";
import { compareNatural, type LoggedRow } from "../rows/index.ts";

export interface RowColumns {
  readonly count: number;
  readonly arms: readonly string[];
  readonly action: Int32Array;
  readonly reward: Float32Array;
  /** The number of the next row, `ENDED` or `CUT`. */
  readonly next: Int32Array;
  /** For each row, its pattern in `patterns`: one number per arm, 1 if the arm may be chosen, else 0. */
  readonly allowed: Int32Array;
  readonly patterns: readonly Float32Array[];
  /** The task of each row. Rows of one task stay on the same side of a split. */
  readonly unit: Int32Array;
  readonly units: readonly string[];
  /** Number of rows without an outcome. */
  readonly unlabelled: number;
}

/** The episode ends with this row. */
export const ENDED = -1;
/** The chain stops at this row, but its episode continued. */
export const CUT = -2;

const MOST_ARMS = 1024;

export class ChainColumns {
  readonly #arms = new Numbering();
  readonly #units = new Numbering();
  readonly #patterns = new Numbering();
  readonly #selectable: (readonly number[])[] = [];
  readonly #chains: string[] = [];
  readonly #starts = new GrowingColumn("i32");
  readonly #action = new GrowingColumn("i32");
  readonly #reward = new GrowingColumn("f32");
  readonly #allowed = new GrowingColumn("i32");
  readonly #unit = new GrowingColumn("i32");
  /** End of each chain: `ENDED` or `CUT`. */
  readonly #end = new GrowingColumn("i32");
  #unlabelled: number;

  constructor(unlabelled = 0) {
    this.#unlabelled = unlabelled;
  }

  /** Adds a chain. A chain that lacks any outcome is left out whole, as in a batch; the result is then false. */
  add(chain: readonly LoggedRow[]): boolean {
    if (chain.some(({ reward }) => reward === null)) {
      this.#unlabelled += chain.length;
      return false;
    }
    this.#chains.push(chain[0]!.chain);
    this.#starts.push(this.#action.length);
    this.#end.push(chain.at(-1)!.terminal ? ENDED : CUT);
    for (const row of chain) this.#addRow(row);
    return true;
  }

  #addRow(row: LoggedRow): void {
    const { candidates, chosen, reward, task } = row;
    if (candidates[chosen]?.selectable !== true || !Number.isFinite(reward)) throw badRow(row);
    const arms = candidates.map(({ id }) => this.#arms.of(id));
    const open = arms.filter((_, c) => candidates[c]!.selectable);
    const pattern = this.#patterns.of(open.join());
    this.#selectable[pattern] ??= open;
    this.#action.push(arms[chosen]!);
    this.#reward.push(reward!);
    this.#allowed.push(pattern);
    this.#unit.push(this.#units.of(task));
  }

  /** Call once, at the end. `from`: for each row of the columns, its number in the order of adding. */
  finish(): { columns: RowColumns; from: Int32Array } {
    const count = this.#action.length;
    if (count === 0) throw nothingLabelled(this.#unlabelled);
    const arms = checkArms([...this.#arms.names].sort(compareUtf8));
    const places = new Map(arms.map((id, a) => [id, a]));
    const place = this.#arms.names.map((id) => places.get(id)!);
    const { from, next } = this.#inOrder(count);
    return {
      from,
      columns: {
        ...{ count, arms, next, units: this.#units.names, unlabelled: this.#unlabelled },
        action: pick(this.#action.take(), from).map((arm) => place[arm]!),
        reward: pick(this.#reward.take(), from),
        allowed: pick(this.#allowed.take(), from),
        unit: pick(this.#unit.take(), from),
        patterns: this.#selectable.map((open) => {
          const pattern = new Float32Array(arms.length);
          for (const arm of open) pattern[place[arm]!] = 1;
          return pattern;
        }),
      },
    };
  }

  /** Sorts the rows by chain, independent of the order of adding. */
  #inOrder(count: number): { from: Int32Array; next: Int32Array } {
    const chains = this.#chains;
    const [starts, ends] = [this.#starts.take(), this.#end.take()];
    const order = Int32Array.from(chains.keys());
    const compare = (a: number, b: number) => compareNatural(chains[a]!, chains[b]!);
    if (!order.every((chain) => chain === 0 || compare(chain - 1, chain) < 0)) order.sort(compare);
    const [from, next] = [new Int32Array(count), new Int32Array(count)];
    let row = 0;
    order.forEach((chain, i) => {
      if (i > 0 && chains[chain] === chains[order[i - 1]!]) throw twice(chains[chain]!);
      const end = starts[chain + 1] ?? count;
      for (let each = starts[chain]!; each < end; each++, row++) {
        from[row] = each;
        next[row] = each + 1 < end ? row + 1 : ends[chain]!;
      }
    });
    return { from, next };
  }
}

/** Numbers names in the order of their first occurrence. */
class Numbering {
  readonly names: string[] = [];
  readonly #numbers = new Map<string, number>();

  of(name: string): number {
    const known = this.#numbers.get(name);
    if (known !== undefined) return known;
    this.#numbers.set(name, this.names.length);
    return this.names.push(name) - 1;
  }
}

/** The values at `places`. */
export function pick<T extends Int32Array | Float32Array>(values: T, places: Int32Array): T {
  const out = new (values.constructor as new (length: number) => T)(places.length);
  places.forEach((place, i) => {
    out[i] = values[place]!;
  });
  return out;
}

function checkArms(arms: readonly string[]): readonly string[] {
  if (arms.length >= 2 && arms.length <= MOST_ARMS) return arms;
  throw new RollbookError(
    "unsupported-candidates",
    { count: arms.length, most: MOST_ARMS },
    `the rows have ${plural(arms.length, "candidate")} in all; a network learns to choose among 2 … ${MOST_ARMS}. Filter the rows, or use a static table.`,
  );
}

function badRow({ id, candidates, chosen, reward }: LoggedRow): RollbookError {
  const what = Number.isFinite(reward)
    ? `chose ${candidates[chosen]?.id ?? `candidate ${chosen} of ${candidates.length}`}, which was not selectable`
    : `has the reward ${reward}`;
  return new RollbookError(
    "bad-training-data",
    { id, chosen },
    `decision ${id} ${what}. Repair the row or leave it out.`,
  );
}

function twice(chain: string): RollbookError {
  return new RollbookError(
    "bad-training-data",
    { chain },
    `chain ${chain} occurs twice. One decision has one outcome: leave one of them out.`,
  );
}

function nothingLabelled(rows: number): RollbookError {
  return new RollbookError(
    "empty-split",
    { rows },
    `none of the ${rows} rows has a reward: there is nothing to learn from. Record outcomes first.`,
  );
}
