/** Follows a launch to its end.
 *  In: a launch, callbacks for results and progress. Out: the final progress. */
import type { Launch, Progress, RolloutResult } from "../../collect/rollout/index.ts";

export interface Followers {
  readonly onResult?: ((result: RolloutResult) => void) | undefined;
  /** Called five times a second. */
  readonly onProgress?: ((progress: Progress) => void) | undefined;
}

const TELL_EVERY_MS = 200;

export async function followLaunch(
  launched: Launch,
  { onResult, onProgress }: Followers = {},
): Promise<Progress> {
  const tell = () => onProgress?.(launched.progress());
  const timer = onProgress === undefined ? undefined : setInterval(tell, TELL_EVERY_MS);
  try {
    for await (const result of launched) onResult?.(result);
  } finally {
    clearInterval(timer);
  }
  return launched.progress();
}
