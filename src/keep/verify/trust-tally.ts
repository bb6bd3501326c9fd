/** Which artifacts are signed, by how many distinct keys, and which of those the reader trusts. */
import { type Digest, DigestTable } from "../../base/index.ts";
import { type Attestation, checkAttestation, type PublicKey } from "../../contract/index.ts";
import type { VerifyReport } from "./report.ts";

export class TrustTally {
  readonly #trusted: ReadonlySet<string>;
  readonly #envelopes = new DigestTable();
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

  /** Who signed a record that is not an artifact. */
  trustOf(subject: Digest): { signed: boolean; trusted: boolean } {
    const signers = [...this.#subjects].filter(([, subjects]) => subjects.includes(subject));
    return { signed: signers.length > 0, trusted: signers.some(([key]) => this.#trusted.has(key)) };
  }

  report(): VerifyReport["trust"] {
    const artifacts = this.#envelopes.size;
    const [signed, trusted] = [new Uint8Array(artifacts), new Uint8Array(artifacts)];
    /** The number of the signer who was last seen on an artifact: it counts once for each. */
    const lastSigner = new Uint32Array(artifacts);
    const signers = [...this.#subjects].map(([key, subjects], signer) => {
      const isTrusted = this.#trusted.has(key);
      let mine = 0;
      for (const subject of subjects) {
        const number = this.#envelopes.find(subject);
        if (number < 0 || lastSigner[number] === signer + 1) continue;
        lastSigner[number] = signer + 1;
        mine++;
        signed[number] = 1;
        if (isTrusted) trusted[number] = 1;
      }
      return { key, artifacts: mine, trusted: isTrusted };
    });
    signers.sort((a, b) => (a.key < b.key ? -1 : 1));
    return { artifacts, signed: countOnes(signed), trusted: countOnes(trusted), signers };
  }
}

function countOnes(flags: Uint8Array): number {
  return flags.reduce((sum, flag) => sum + flag, 0);
}
