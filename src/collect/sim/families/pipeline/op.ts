/** One operation that a pipeline may hold: said in English, rendered in JavaScript and Python, and evaluated here.
 *  A mistake is the same operation with other parameters, so whatever goes wrong can be rendered and evaluated too. */
import type { Rng } from "../../../../base/index.ts";

export type Shape = "numbers" | "text" | "words" | "number" | "records" | "result";
export type Params = Readonly<Record<string, number | string | boolean>>;

export interface Op {
  readonly name: string;
  readonly from: Shape;
  readonly to: Shape;
  /** 1: one obvious reading. 2: a detail to get right. 3: an edge that is easy to miss. */
  readonly level: 1 | 2 | 3;
  draw(rng: Rng): Params;
  apply(value: unknown, params: Params): unknown;
  /** Expressions in which `@` stands for the value. */
  javascript(params: Params): string;
  /** Absent where only JavaScript tasks use the operation. */
  python?(params: Params): string;
  /** Functions the expression calls; an operation stands at most once in a pipeline, so names never clash. */
  helper?(params: Params): { readonly javascript: string; readonly python?: string };
  /** Several wordings of one meaning, each a phrase that follows "then". */
  say(params: Params): readonly string[];
  slips(params: Params): readonly Slip[];
}

interface Slip {
  readonly params: Params;
  readonly flaw: string;
}

interface Definition<In, Out, P extends Params> {
  readonly name: string;
  readonly from: Shape;
  readonly to: Shape;
  readonly level: 1 | 2 | 3;
  draw(rng: Rng): P;
  apply(value: In, params: Wide<P>): Out;
  javascript(params: Wide<P>): string;
  python?(params: Wide<P>): string;
  helper?(params: Wide<P>): { javascript: string; python?: string };
  say(params: Wide<P>): readonly string[];
  /** Changed parameters by flaw. */
  slips(params: Wide<P>): Readonly<Record<string, Partial<Wide<P>>>>;
}

/** A draw may give `true` always; a slip may still give `false`. */
type Wide<P> = { [K in keyof P]: P[K] extends boolean ? boolean : P[K] extends number ? number : string };

export function defineOp<In, Out, P extends Params>(op: Definition<In, Out, P>): Op {
  return {
    ...op,
    slips: (params: Params) =>
      Object.entries(op.slips(params as Wide<P>)).map(([flaw, changed]) => ({
        flaw,
        params: { ...params, ...changed } as Params,
      })),
  } as unknown as Op;
}

export type Numbers = readonly number[];
export type Words = readonly string[];
