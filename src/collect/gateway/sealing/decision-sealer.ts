/** Seals decisions without a call, one rollout each. In: a step and the prompt of its decision. Out: an artifact
 *  that is durable, signed and admitted like any other. The prompt is its task; the step holds the rest of the
 *  router's input. */
import { type Clock, type Digest, digestJson, type Id, parseId } from "../../../base/index.ts";
import {
  DECISION_LOG,
  type Ending,
  type RolloutContent,
  type Signer,
  type Step,
  seal,
  sealRecorded,
  Task,
} from "../../../contract/index.ts";
import { type BlobStore, makeSealer, type Sealer } from "../../../store/index.ts";
import type { Admit } from "../../receipt.ts";
import { newRevisions } from "../../revision-records.ts";
import { receiptFor } from "./artifact-sealer.ts";

interface DecisionSealerOptions {
  readonly store: Pick<BlobStore, "put" | "flush">;
  readonly signer: Signer | undefined;
  readonly admit: Admit | undefined;
  readonly clock: Clock;
  readonly gatewayName: string;
  readonly dataSource: RolloutContent["dataSource"];
}

export interface DecisionToSeal {
  readonly id: Id;
  readonly family: Id;
  readonly step: Omit<Step, "call">;
  /** The prompt as it is recorded. */
  readonly prompt: string;
  /** Decisions of one group belong to one session. */
  readonly group?: Id | undefined;
}

const DECIDED: Ending = { kind: "terminal" };

export class DecisionSealer {
  readonly #deps: DecisionSealerOptions;
  readonly #sealer: Sealer;
  /** Revisions whose records this sealer has sealed. */
  readonly #revisions = new Set<string>();

  constructor(options: DecisionSealerOptions) {
    this.#deps = options;
    this.#sealer = makeSealer(options.store, options.signer);
  }

  /** Resolves when the artifact is durable. */
  async seal(decision: DecisionToSeal): Promise<{
    content: Digest;
    envelope: Digest;
    ending: Ending;
    receipt?: Digest;
  }> {
    const { admit, clock } = this.#deps;
    const sealed = this.#artifactOf(decision);
    const { content, envelope } = sealed;
    const atMs = clock.nowMs();
    const artifact = { content: content.record, envelope: envelope.record, digest: content.digest };
    const admitted =
      admit === undefined ? undefined : receiptFor(sealed, await admit({ ...artifact, nowMs: atMs }), atMs);
    const revisions = newRevisions(content.record.streams, this.#revisions);
    try {
      await this.#sealer.add({
        envelope,
        blobs: [...revisions, ...sealed.blobs.slice(0, -1), ...(admitted?.blobs ?? []), envelope],
        ...(admitted === undefined ? {} : { others: [admitted.receipt.digest] }),
      });
    } catch (error) {
      // Revisions that did not become durable are sealed with the next decision.
      this.#revisions.clear();
      throw error;
    }
    const receipt = admitted === undefined ? {} : { receipt: admitted.receipt.digest };
    return { content: content.digest, envelope: envelope.digest, ending: DECIDED, ...receipt };
  }

  #artifactOf({ id, family, step, prompt, group }: DecisionToSeal) {
    const { clock, gatewayName, dataSource } = this.#deps;
    const atMs = clock.nowMs();
    const asked = prompt.toWellFormed();
    const task = seal(Task, {
      // Equal prompts are the same task.
      id: parseId(`route-${digestJson("rollbook.route-task.v1", asked).slice(7, 23)}`),
      ...{ environment: DECISION_LOG, payload: {}, prompt: asked, dataSource },
    });
    return sealRecorded(
      {
        rolloutId: id,
        environment: DECISION_LOG,
        task: { id: task.record.id, digest: task.digest },
        ...(group === undefined ? {} : { group }),
        ...{ seed: 0n, dataSource, sampling: {}, calls: [], scores: [], ending: DECIDED },
        streams: [{ level: "step", family, steps: [step] }],
        envelope: { worker: parseId(gatewayName, "worker"), startedAtMs: atMs, endedAtMs: atMs },
      },
      [task],
    );
  }
}
