/** Classifies errors of the NATS client. In: an error. Out: a fault. Pure.
 *  away: the outcome of the request is unknown, retry. busy: not accepted, retry. conflict: another message was
 *  there first. missing: no such stream. refused: a retry does not help. */
interface NatsFault {
  readonly kind: "away" | "busy" | "conflict" | "missing" | "refused";
  readonly message: string;
}

const WRONG_LAST_SEQUENCE = 10071;
/** The cluster has another write to the subject in flight and does not know the order yet. */
const WRONG_LAST_SEQUENCE_UNKNOWN = 10164;
const STREAM_NOT_FOUND = 10059;
/** A full or failing store. Its HTTP-like status suggests a retry, which does not help. */
const STORE_FAILED = 10077;
/** The cluster is electing a leader, or has no quorum yet. */
const NOT_NOW: readonly number[] = [10009, 10118];

const AWAY: readonly string[] = [
  ...["TimeoutError", "NoResponders", "RequestError", "ConnectionError", "ClosedConnectionError"],
  ...["DrainingConnectionError", "JetStreamNotEnabled", "ProtocolError"],
];

export function faultOf(error: unknown): NatsFault {
  if (!(error instanceof Error)) return { kind: "refused", message: String(error) };
  const { name, message } = error;
  const code = "code" in error && typeof error.code === "number" ? error.code : undefined;
  if (code === WRONG_LAST_SEQUENCE) return { kind: "conflict", message };
  if (code === WRONG_LAST_SEQUENCE_UNKNOWN) return { kind: "busy", message };
  if (code === STREAM_NOT_FOUND) return { kind: "missing", message };
  if (code === STORE_FAILED) return { kind: "refused", message };
  const status = "status" in error && typeof error.status === "number" ? error.status : code;
  if (status === 503 || status === 429 || status === 408) return { kind: "away", message };
  if (code !== undefined && NOT_NOW.includes(code)) return { kind: "away", message };
  if (AWAY.includes(name)) return { kind: "away", message };
  return { kind: "refused", message };
}
