/** The events of the journal, by kind. Types only. */
import type { RolloutEvent } from "../../../contract/index.ts";

export type EventOf<K extends RolloutEvent["event"]["kind"]> = Extract<RolloutEvent["event"], { kind: K }>;
export type OpenedEvent = EventOf<"opened">;
/** Feedback. The journal keeps its older word, `graded`. */
export type FeedbackEvent = EventOf<"graded">;
export type CallOutcome = EventOf<"called">["outcome"];
