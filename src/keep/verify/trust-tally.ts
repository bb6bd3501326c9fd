/** Counts signed roots, the distinct keys of each, and the keys that the reader trusts. */
import { type Digest, DigestTable } from "../../base/index.ts";
import { type Attestation, checkAttestation, type PublicKey, RolloutEnvelope } from "../../contract/index.ts";
import type { KindTrust, VerifyReport } from "./report.ts";

export class TrustTally {
  readonly #trusted: ReadonlySet<string>;
  readonly #roots = new DigestTable();
  /** Number of the kind of each root, by the number of the root. */
  readonly #kindOf: number[] = [];
  readonly #kinds: string[] = [];
  readonly #subjects = new Map<PublicKey, Digest[]>();

  constructor(trustedKeys: Iterable<string>) {
    this.#trusted = new Set(trustedKeys);
  }

  addRoot(digest: Digest, kind: string): void {
    if (this.#roots.add(digest) < this.#kindOf.length) return;
    const known = this.#kinds.indexOf(kind);
    this.#kindOf.push(known < 0 ? this.#kinds.push(kind) - 1 : known);
  }

  /** Throws a refusal if the signature is invalid; an invalid signature does not count. */
  addAttestation(attestation: Attestation): void {
    checkAttestation(attestation);
    const subjects = this.#subjects.get(attestation.signer) ?? [];
    for (const subject of attestation.subjects) subjects.push(subject);
    this.#subjects.set(attestation.signer, subjects);
  }

  /** Adds a root that carries its own valid signature. */
  addSigned(digest: Digest, signer: PublicKey): void {
    this.#subjects.set(signer, [...(this.#subjects.get(signer) ?? []), digest]);
  }

  isTrusted(signer: string): boolean {
    return this.#trusted.has(signer);
  }

  /** All digests that a valid signature names, by any key. */
  subjects(): ReadonlySet<Digest> {
    return new Set([...this.#subjects.values()].flat());
  }

  /** Signature and trust of one record. */
  trustOf(subject: Digest): { signed: boolean; trusted: boolean } {
    const signers = [...this.#subjects].filter(([, subjects]) => subjects.includes(subject));
    return { signed: signers.length > 0, trusted: signers.some(([key]) => this.#trusted.has(key)) };
  }

  report(): VerifyReport["trust"] {
    const count = this.#roots.size;
    const [signed, trusted] = [new Uint8Array(count), new Uint8Array(count)];
    /** Number of the last signer seen for each root, so that a signer counts once per root. */
    const lastSigner = new Uint32Array(count);
    const artifactKind = this.#kinds.indexOf(RolloutEnvelope.kind);
    const signers = [...this.#subjects].map(([key, subjects], signer) => {
      const isTrusted = this.#trusted.has(key);
      const mine = { artifacts: 0, roots: 0 };
      for (const subject of subjects) {
        const number = this.#roots.find(subject);
        if (number < 0 || lastSigner[number] === signer + 1) continue;
        lastSigner[number] = signer + 1;
        mine.roots++;
        if (this.#kindOf[number] === artifactKind) mine.artifacts++;
        signed[number] = 1;
        if (isTrusted) trusted[number] = 1;
      }
      return { key, ...mine, trusted: isTrusted };
    });
    signers.sort((a, b) => (a.key < b.key ? -1 : 1));
    const roots = this.#byKind(signed, trusted);
    const { count: artifacts, ...of } = roots[RolloutEnvelope.kind] ?? { count: 0, signed: 0, trusted: 0 };
    return { artifacts, ...of, roots, signers };
  }

  #byKind(signed: Uint8Array, trusted: Uint8Array): Record<string, KindTrust> {
    const tallies = this.#kinds.map(() => ({ count: 0, signed: 0, trusted: 0 }));
    for (const [number, kind] of this.#kindOf.entries()) {
      const tally = tallies[kind]!;
      tally.count++;
      tally.signed += signed[number]!;
      tally.trusted += trusted[number]!;
    }
    const entries = this.#kinds.map((kind, i): [string, KindTrust] => [kind, tallies[i]!]);
    return Object.fromEntries(entries.sort(([a], [b]) => (a < b ? -1 : 1)));
  }
}
