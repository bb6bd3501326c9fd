export {
  type ReadTrace,
  type TraceCall,
  type TracedRollout,
  type TraceTokens,
  tracedToRead,
} from "./rollout-of-trace.ts";
export { EXTRAS_KEY, readExtras, TRACED_PARTS, type TraceExtras, traceExtras } from "./trace-extras.ts";
export { type TraceMessage, traceMessages, traceTools } from "./trace-messages.ts";
export { requireShape } from "./trace-shape.ts";
export { wholeFor } from "./whole-rollout.ts";
