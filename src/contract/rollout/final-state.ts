/** The final state of a rollout, as its agent reports it: any JSON, stored as a blob and named by digest. */
import { canonicalize, type Digest, digestBytes, type Json } from "../../base/index.ts";

export const FINAL_STATE_KIND = "rollbook.final-state.v1";

export function sealFinalState(state: Json): { kind: string; digest: Digest; bytes: Uint8Array } {
  const bytes = Buffer.from(canonicalize(state));
  return { kind: FINAL_STATE_KIND, digest: digestBytes(FINAL_STATE_KIND, bytes), bytes };
}
