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
  /** The last entry that holds the frame. Stored here, so that a call needs no lookup. */
  reference:
    | { readonly journal: FrameReferences; readonly segment: number; readonly bytes: Uint8Array }
    | undefined;
}

/** First character of a reference. A frame begins with a brace. */
const MARK = "@";

/** The references of one journal. */
export class FrameReferences {
  #segment = -1;
  #decisions = 0;
  /** Frames that the entry holds itself. */
  #own: { readonly frame: EncodedFrame; readonly decision: number }[] = [];

  /** Begins an entry in this segment. */
  begin(segment: number): this {
    this.#decisions = 0;
    if (this.#own.length > 0) this.#own = [];
    this.#segment = segment;
    return this;
  }

  /** Bytes that the next decision of the entry stores for its frame. */
  next(frame: EncodedFrame): Uint8Array {
    const decision = this.#decisions++;
    const { reference } = frame;
    if (reference?.journal === this && reference.segment === this.#segment) return reference.bytes;
    if (frame.isKept) this.#own.push({ frame, decision });
    return frame.bytes;
  }

  /** Ends the entry, which the log has put at this place. */
  end({ segment, offset, bytes }: LogPlace): void {
    for (const { frame, decision } of this.#own)
      frame.reference = {
        journal: this,
        segment,
        bytes: Buffer.from(`${MARK}${offset},${bytes},${decision}`),
      };
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
