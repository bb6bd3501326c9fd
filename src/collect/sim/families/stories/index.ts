export { drawEvent, EVENT_KINDS, type EventKind, type Holdings, type StoryEvent } from "./events.ts";
