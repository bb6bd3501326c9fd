/** The identity of a worker: a name and a key, of which the key decides. Pure.
 *  A worker registers by signing its name, key and the time. Claims are held under both name and key, so a stranger
 *  with the same name gets no claims of this worker. Uploads must be signed by the same key. */
import { type Digest, digestJson, type Id, parseId, RollbookError } from "../../../base/index.ts";
import {
  Attestation,
  checkAttestation,
  openRecord,
  type PublicKey,
  refuse,
  type Signer,
} from "../../../contract/index.ts";
import { CLAIM_TTL_MS } from "../../queue/index.ts";

export interface Registration {
  readonly worker: string;
  readonly publicKey: PublicKey;
  readonly atMs: number;
  /** A sealed attestation by `publicKey` over `registrationDigest`. */
  readonly attestation: Uint8Array;
}

export interface RegisteredWorker {
  readonly id: Id;
  readonly key: PublicKey;
  /** The name under which the queue keeps the worker's claims. */
  readonly holder: string;
  readonly seenAtMs: number;
}

/** Validity of a registration. The limit prevents a later replay of a recorded registration. */
const REGISTRATION_MS = 60_000;
/** The time of two missed heartbeats. */
export const STALE_AFTER_MS = CLAIM_TTL_MS;

function registrationDigest(parts: Omit<Registration, "attestation">): Digest {
  const { worker, publicKey, atMs } = parts;
  return digestJson("rollbook.worker-registration.v1", { worker, publicKey, atMs });
}

/** Makes the signed message with which a worker registers. */
export function makeRegistration(signer: Signer, worker: string, atMs: number): Registration {
  const parts = { worker, publicKey: signer.publicKey, atMs };
  return { ...parts, attestation: signer.attest([registrationDigest(parts)]).bytes };
}

export function checkRegistration(
  registration: Registration,
  { nowMs, trusts }: { nowMs: number; trusts: (key: PublicKey) => boolean },
): RegisteredWorker {
  const { worker, publicKey: key, atMs } = registration;
  const id = parseId(worker, "worker");
  const attestation = openRecord(Attestation, registration.attestation, "registration");
  if (attestation.signer !== key || !attestation.subjects.includes(registrationDigest(registration)))
    throw refuse(
      "bad-signature",
      { worker, key },
      `the registration of ${worker} is not signed by the key it names. Sign name, key and time.`,
    );
  checkAttestation(attestation);
  if (!trusts(key))
    throw new RollbookError(
      "untrusted-key",
      { worker, key },
      `the key ${key} of worker ${worker} is not trusted here. Trust it with \`rollbook keys trust\`.`,
    );
  if (Math.abs(nowMs - atMs) > REGISTRATION_MS)
    throw new RollbookError(
      "stale-registration",
      { worker, atMs, nowMs },
      `the registration of ${worker} was signed at ${atMs}, now is ${nowMs}. Register again; check both clocks.`,
    );
  return { id, key, holder: holderOf(id, key), seenAtMs: nowMs };
}

/** 96 bits of the digest of name and key distinguish workers with the same name. All names give the same length. */
function holderOf(worker: Id, key: PublicKey): string {
  return `${digestJson("rollbook.worker-holder.v1", { worker, key }).slice(7, 31)}`;
}
