/** Writes the frame of a router once in a segment of the journal. Later decisions in the segment refer to it.
 *  In: frames of the entry being encoded, and its place. Out: the frame, or a reference to it. The log removes a whole
 *  segment at a time, so a reference never outlives its frame. Does no I/O. */
import type { LogPlace } from "../../../store/index.ts";

/** Place of a frame: an entry of the same segment, and the number of the decision in the entry. */
export interface FramePlace extends Omit<LogPlace, "segment"> {
  readonly decision: number;
}

export interface EncodedFrame {
  /** The router and its candidates, as JSON in UTF-8. */
  readonly bytes: Uint8Array;
  /** True if later decisions of the router have the same frame object. */
  readonly isKept: boolean;
}

/** Limit of remembered frames. Few routers decide in a segment. */
const MOST_FRAMES = 64;
/** First character of a reference. A frame begins with a brace. */
const MARK = "@";

export class FrameReferences {
  #segment = -1;
  readonly #references = new Map<Uint8Array, Uint8Array>();
  #decisions = 0;
  /** Frames that the entry holds itself. */
  #own: { readonly frame: Uint8Array; readonly decision: number }[] = [];

  /** Begins an entry in this segment. */
  begin(segment: number): this {
    this.#decisions = 0;
    if (this.#own.length > 0) this.#own = [];
    if (segment !== this.#segment) this.#references.clear();
    this.#segment = segment;
    return this;
  }

  /** Bytes that the next decision of the entry stores for its frame. */
  next({ bytes, isKept }: EncodedFrame): Uint8Array {
    const decision = this.#decisions++;
    if (!isKept) return bytes;
    const reference = this.#references.get(bytes);
    if (reference !== undefined) return reference;
    this.#own.push({ frame: bytes, decision });
    return bytes;
  }

  /** Ends the entry, which the log has put at this place. */
  end({ offset, bytes }: LogPlace): void {
    for (const { frame, decision } of this.#own) {
      if (this.#references.size >= MOST_FRAMES) this.#references.clear();
      this.#references.set(frame, Buffer.from(`${MARK}${offset},${bytes},${decision}`));
    }
  }
}

/** Undefined if the text is a frame. */
export function framePlaceOf(text: string): FramePlace | undefined {
  if (!text.startsWith(MARK)) return undefined;
  const [offset, bytes, decision] = text.slice(MARK.length).split(",").map(Number) as [
    number,
    number,
    number,
  ];
  return { offset, bytes, decision };
}
