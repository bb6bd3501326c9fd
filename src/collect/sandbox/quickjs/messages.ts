/** The messages between the engine and its worker thread. */
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

/** Output is sent as it is written, so that the output of a terminated program is not lost. */
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
