/** What the engine and its worker thread say to each other. */
import type { Limits } from "../sandbox.ts";

export interface GuestTask {
  readonly entry: string;
  readonly args: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  readonly stdin: Uint8Array;
  readonly files: ReadonlyMap<string, Uint8Array>;
  readonly outputs: readonly string[];
  readonly limits: Limits;
}

/** Output travels as it is written, so that what a terminated program said is not lost. */
export type FromWorker =
  | { readonly kind: "ready" }
  | { readonly kind: "output"; readonly stream: "stdout" | "stderr"; readonly bytes: Uint8Array }
  | { readonly kind: "end"; readonly end: GuestEnd };

export interface GuestEnd {
  readonly exitCode: number | null;
  readonly why: "exit" | "timeout" | "memory" | "flood" | "crash";
  readonly files: ReadonlyMap<string, Uint8Array>;
  readonly peakMemoryBytes: number;
}
