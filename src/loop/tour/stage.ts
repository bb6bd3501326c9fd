/** Defines the data that the scenes of the tour share: a book, a key, the world, and results of earlier scenes. */
import type { Clock } from "../../base/index.ts";
import type { BookOnDisk } from "../../book/open/index.ts";
import type { Sealed, SealedRollout, Signer, TrainerBatch } from "../../contract/index.ts";
import type { Book } from "../../store/index.ts";
import type { World } from "./world.ts";

export interface Stage {
  readonly opened: BookOnDisk;
  /** Bytes of the book. */
  readonly book: Book;
  readonly clock: Clock;
  /** Empty directory for copies. */
  readonly scratch: string;
  readonly signer: Signer;
  readonly seed: bigint;
  readonly world: World;
  readonly rollouts: SealedRollout[];
  readonly batches: Sealed<TrainerBatch>[];
}

export interface SceneResult {
  readonly lines: readonly string[];
  /** One sentence that states what the scene has shown. */
  readonly proved: string;
  readonly data: Readonly<Record<string, unknown>>;
}

export interface TourScene {
  readonly title: string;
  play(stage: Stage): Promise<SceneResult>;
}
