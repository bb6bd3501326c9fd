export {
  Attestation,
  checkAttestation,
  checkAttestationAside,
  newKeyPem,
  type PublicKey,
  publicKey,
  type Signer,
  signerFromPem,
  signersOf,
} from "./attestation.ts";
export { Receipt, type ReceiptOutcome } from "./receipt.ts";
export { type ErasedBlob, Tombstone } from "./tombstone.ts";
export { type Disposition, FULL_WEIGHT_BPS, Release, Verdict } from "./verdict.ts";
