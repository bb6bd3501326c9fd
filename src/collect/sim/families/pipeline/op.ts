/** One operation of a pipeline: described in English, rendered in JavaScript and Python, and evaluated here.
 *  A mistake is the same operation with other parameters, so each mistake can be rendered and evaluated too. */
import type { Rng } from "../../../../base/index.ts";

export type Shape = "numbers" | "text" | "words" | "number" | "records" | "result";
export type Params = Readonly<Record<string, number | string | boolean>>;

export interface Op {
  readonly name: string;
  readonly from: Shape;
  readonly to: Shape;
  /** 1: one obvious reading. 2: a detail to get right. 3: an edge case that is easy to miss. */
  readonly level: 1 | 2 | 3;
  draw(rng: Rng): Params;
  apply(value: unknown, params: Params): unknown;
  /** Expressions in which `@` stands for the value. */
  javascript(params: Params): string;
  /** Absent if only JavaScript tasks use the operation. */
  python?(params: Params): string;
  /** Functions that the expression calls. A pipeline holds each operation at most once, so names never clash. */
  helper?(params: Params): { readonly javascript: string; readonly python?: string };
  /** Several wordings of the same meaning, each a phrase that follows "then". */
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
  /** Changed parameters, keyed by flaw. */
  slips(params: Wide<P>): Readonly<Record<string, Partial<Wide<P>>>>;
}

/** A draw may always give `true`. A slip may still give `false`. */
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
