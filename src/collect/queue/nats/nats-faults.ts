/** What an error of the client means to a caller. Pure.
 *  away: nothing is known of the request, ask again. busy: not taken, ask again. conflict: another message was there.
 *  missing: no such stream. refused: asking again does not help. */
interface NatsFault {
  readonly kind: "away" | "busy" | "conflict" | "missing" | "refused";
  readonly message: string;
}

const WRONG_LAST_SEQUENCE = 10071;
/** A cluster that has another write to the subject in flight, and does not know yet which comes first. */
const WRONG_LAST_SEQUENCE_UNKNOWN = 10164;
const STREAM_NOT_FOUND = 10059;
/** A full or failing store. Its HTTP-like status says "try again", which does not help. */
const STORE_FAILED = 10077;
/** Clusters that elect or have no quorum yet. */
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
