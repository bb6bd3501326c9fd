/** Runs the tour: the contracts, scene by scene.
 *  In: a directory and a seed. Out: the result of each scene. Digests of content are the same on every run with one
 *  seed; only the key, and so the signatures, are new. */
import { manualClock } from "../../base/index.ts";
import { openBook } from "../../book/open/index.ts";
import { newKeyPem, signerFromPem } from "../../contract/index.ts";
import { batchScene, orderScene } from "./batch-scene.ts";
import { revisionsScene, rolloutsScene } from "./collect-scene.ts";
import { gatewayScene } from "./gateway-scene.ts";
import { laterScene } from "./later-scene.ts";
import { judgeScene, learnScene } from "./learn-scene.ts";
import { replayScene } from "./replay-scene.ts";
import { simScene } from "./sim-scene.ts";
import type { SceneResult, Stage, TourScene } from "./stage.ts";
import { refusalScene, tamperScene, verifyScene } from "./verify-scene.ts";
import { makeWorld } from "./world.ts";

/** Scenes that write to the book of the tour. The others have their own books in the scratch folder, and take most of
 *  the time. */
export const BOOK_SCENES: readonly TourScene[] = [
  revisionsScene,
  rolloutsScene,
  laterScene,
  batchScene,
  orderScene,
  replayScene,
  verifyScene,
  tamperScene,
  refusalScene,
];
const SCENES: readonly TourScene[] = [...BOOK_SCENES, gatewayScene, simScene, learnScene, judgeScene];

interface TourOptions {
  readonly root: string;
  readonly scratch: string;
  readonly seed: bigint;
  /** Scenes to run (default: all). */
  readonly scenes?: readonly TourScene[];
  readonly onScene: (scene: SceneResult & { title: string; number: number }) => void;
}

/** Returns the public key that signed. */
export async function runTour({
  root,
  scratch,
  seed,
  scenes = SCENES,
  onScene,
}: TourOptions): Promise<string> {
  const clock = manualClock(1_700_000_000_000);
  const signer = signerFromPem(newKeyPem());
  const opened = await openBook(root, { create: true, clock, signer: () => signer });
  try {
    const stage: Stage = {
      opened,
      book: opened.store,
      clock,
      scratch,
      signer,
      seed,
      world: makeWorld(seed),
      rollouts: [],
      batches: [],
    };
    for (const [i, scene] of scenes.entries())
      onScene({ title: scene.title, number: i + 1, ...(await scene.play(stage)) });
    return signer.publicKey;
  } finally {
    await opened.close();
  }
}
