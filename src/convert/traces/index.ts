export {
  idOf,
  rolloutOfTrace,
  type TraceCall,
  type TracedRollout,
  type TraceTokens,
} from "./rollout-of-trace.ts";
export { EXTRAS_KEY, readExtras, type TraceExtras, traceExtras } from "./trace-extras.ts";
export { type TraceMessage, type TraceToolCall, traceMessages, traceTools } from "./trace-messages.ts";
export { wholeFor } from "./whole-rollout.ts";
