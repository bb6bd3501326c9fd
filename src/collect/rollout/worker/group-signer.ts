/** Signs the concurrent uploads of a worker with one signature. A group of rollouts is sealed together, and a separate
 *  signature costs as much as checking the rollout. In: envelopes that the book holds. Out: the bytes of an attestation
 *  that covers the envelope, the same for all envelopes of one turn of the event loop. */
import type { Digest } from "../../../base/index.ts";
import type { Signer } from "../../../contract/index.ts";
import { SUBJECTS_PER_SIGNATURE } from "../../../store/index.ts";

export type SignTogether = (envelope: Digest) => Promise<Uint8Array>;

export function makeGroupSigner(signer: Signer): SignTogether {
  let group: { readonly subjects: Digest[]; readonly signed: Promise<Uint8Array> } | undefined;
  const begin = () => {
    const subjects: Digest[] = [];
    const signed = new Promise<void>((resolve) => setImmediate(resolve)).then(() => {
      if (group?.subjects === subjects) group = undefined;
      return signer.attest(subjects).bytes;
    });
    return { subjects, signed };
  };
  return (envelope) => {
    if (group === undefined || group.subjects.length === SUBJECTS_PER_SIGNATURE) group = begin();
    group.subjects.push(envelope);
    return group.signed;
  };
}
