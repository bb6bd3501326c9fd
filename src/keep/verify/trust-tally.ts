/** Which artifacts are signed, by how many distinct keys, and which of those the reader trusts. */
import type { Digest } from "../../base/digest.ts";
import { type Attestation, checkAttestation, type PublicKey } from "../../contract/attestation.ts";
import type { VerifyReport } from "./report.ts";

export class TrustTally {
  readonly #trusted: ReadonlySet<string>;
  readonly #envelopes = new Set<Digest>();
  readonly #subjects = new Map<PublicKey, Digest[]>();

  constructor(trustedKeys: Iterable<string>) {
    this.#trusted = new Set(trustedKeys);
  }

  addArtifact(envelope: Digest): void {
    this.#envelopes.add(envelope);
  }

  /** Throws a refusal if the signature is not good; a bad one counts for nothing. */
  addAttestation(attestation: Attestation): void {
    checkAttestation(attestation);
    const subjects = this.#subjects.get(attestation.signer) ?? [];
    for (const subject of attestation.subjects) subjects.push(subject);
    this.#subjects.set(attestation.signer, subjects);
  }

  report(): VerifyReport["trust"] {
    const signed = new Set<Digest>();
    const trusted = new Set<Digest>();
    const signers = [...this.#subjects].map(([key, subjects]) => {
      const mine = new Set(subjects.filter((subject) => this.#envelopes.has(subject)));
      for (const subject of mine) {
        signed.add(subject);
        if (this.#trusted.has(key)) trusted.add(subject);
      }
      return { key, artifacts: mine.size, trusted: this.#trusted.has(key) };
    });
    signers.sort((a, b) => (a.key < b.key ? -1 : 1));
    return { artifacts: this.#envelopes.size, signed: signed.size, trusted: trusted.size, signers };
  }
}
