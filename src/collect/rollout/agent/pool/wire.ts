/** The messages between the launcher and the process of an agent: one line of JSON per message. Plain JSON would change
 *  values of an agent (NaN to null, a typed array to an object), so values outside of JSON are tagged.
 *  In: values. Out: JSON, and back. Pure. Does not trust incoming messages: the reader checks each one. */
import type { Digest, Json } from "../../../../base/index.ts";
import type { Ending } from "../../../../contract/index.ts";
import type { RolloutContext, RolloutLimits } from "../agent.ts";

/** The descriptor of the channel in the agent's process. */
export const CHANNEL_FD = 3;
/** A result is a few numbers and a final state. Larger data belongs in the agent's own storage. */
export const MAX_MESSAGE_CHARS = 64 * 1024 * 1024;

export type SentContext = Pick<RolloutContext, "rolloutId" | "sample" | "attempt" | "rolloutConfig"> & {
  readonly seed: string;
  readonly baseUrl?: string;
  readonly apiKey?: string;
  readonly maxTurns?: number;
};

export type ToAgent =
  | { readonly kind: "run"; readonly id: number; readonly payload: Json; readonly context: SentContext }
  | { readonly kind: "score"; readonly id: number; readonly input: Json }
  | { readonly kind: "abort"; readonly id: number; readonly message: string; readonly limit?: "time" };

export type FromAgent =
  | {
      readonly kind: "ready";
      readonly limits?: RolloutLimits;
      readonly scorer?: { readonly name: string; readonly digest: Digest };
    }
  | { readonly kind: "unfit"; readonly message: string }
  | { readonly kind: "log"; readonly message: string }
  /** The agent has read the request. Later failures are the agent's. */
  | { readonly kind: "began"; readonly id: number }
  | { readonly kind: "returned"; readonly id: number; readonly value: Json }
  /** `named`: the agent named the owner with `failedBy`. `last`: the process ends. */
  | {
      readonly kind: "threw";
      readonly id: number;
      readonly ending: Ending;
      readonly named: boolean;
      readonly last: boolean;
    };

const ARRAYS = {
  Int8Array,
  Uint8Array,
  Uint8ClampedArray,
  Int16Array,
  Uint16Array,
  Int32Array,
  Uint32Array,
  Float32Array,
  Float64Array,
  BigInt64Array,
  BigUint64Array,
} as const;
type ArrayName = keyof typeof ARRAYS;

/** Throws a TypeError that names the value that cannot be sent. */
export function pack(value: unknown): Json {
  switch (typeof value) {
    case "string":
    case "boolean":
      return value;
    case "number":
      return Number.isFinite(value) && !Object.is(value, -0)
        ? value
        : { $: "number", v: Object.is(value, -0) ? "-0" : String(value) };
    case "bigint":
      return { $: "bigint", v: String(value) };
    case "undefined":
      return { $: "undefined" };
    case "object":
      return value === null ? null : packObject(value);
    default:
      throw new TypeError(`a ${typeof value} cannot leave the agent's process`);
  }
}

function packObject(value: object): Json {
  if (Array.isArray(value)) return value.map(pack);
  if (ArrayBuffer.isView(value)) {
    const name = Object.prototype.toString.call(value).slice(8, -1);
    if (!Object.hasOwn(ARRAYS, name)) throw new TypeError(`a ${name} cannot leave the agent's process`);
    return { $: name, v: Buffer.from(value.buffer, value.byteOffset, value.byteLength).toString("base64") };
  }
  if ("toJSON" in value && typeof value.toJSON === "function") return pack(value.toJSON());
  const entries = Object.entries(value).map(([key, each]) => [key, pack(each)] as const);
  return Object.hasOwn(value, "$")
    ? { $: "object", v: entries.map(([key, each]) => [key, each]) }
    : Object.fromEntries(entries);
}

/** Reverses `pack`. Throws a TypeError for a form that `pack` never writes. */
export function unpack(value: Json): unknown {
  if (typeof value !== "object" || value === null) return value;
  if (Array.isArray(value)) return value.map(unpack);
  const fields = value as { readonly [key: string]: Json };
  if (!Object.hasOwn(fields, "$"))
    return Object.fromEntries(Object.entries(fields).map(([key, each]) => [key, unpack(each)]));
  const { $: tag, v } = fields;
  if (tag === "undefined") return undefined;
  if (tag === "number") return Number(v);
  if (tag === "bigint" && typeof v === "string" && /^-?\d+$/.test(v)) return BigInt(v);
  if (tag === "object" && Array.isArray(v))
    return Object.fromEntries((v as [string, Json][]).map(([key, each]) => [key, unpack(each)]));
  if (typeof tag === "string" && Object.hasOwn(ARRAYS, tag) && typeof v === "string") {
    const bytes = new Uint8Array(Buffer.from(v, "base64"));
    return new ARRAYS[tag as ArrayName](bytes.buffer);
  }
  throw new TypeError("the agent's process sent a value of an unknown form");
}

/** Splits a stream into lines. A line longer than `most` characters is cut there, and `onLong` is called once. */
export function lineSplitter(
  onLine: (line: string) => void,
  { most, onLong = () => {} }: { readonly most: number; readonly onLong?: () => void },
): { push(chunk: string): void; end(): void } {
  let parts: string[] = [];
  let length = 0;
  const add = (text: string) => {
    if (length + text.length > most) onLong();
    const fitting = text.slice(0, Math.max(0, most - length));
    length += text.length;
    if (fitting !== "") parts.push(fitting);
  };
  const take = () => {
    const line = parts.join("");
    parts = [];
    length = 0;
    onLine(line);
  };
  return {
    push(chunk) {
      let from = 0;
      for (let at = chunk.indexOf("\n"); at >= 0; at = chunk.indexOf("\n", from)) {
        add(chunk.slice(from, at));
        take();
        from = at + 1;
      }
      add(chunk.slice(from));
    },
    end() {
      if (length > 0) take();
    },
  };
}
