/** Opens the place where rollouts are recorded: the book, opened here or by the caller, with the defaults of all
 *  writers.
 *  In: a path or an open book. Out: the book, a clock, an identity, and a function that closes the book if it was
 *  opened here. */
import { type Clock, systemClock } from "../../base/index.ts";
import {
  bookRecorder,
  checkGatewayBook,
  type GatewayPlace,
  gatewayRecorder,
  type Recorder,
} from "../../collect/rollout/index.ts";
import type { FreshnessBudgets } from "../../keep/admit/index.ts";
import { type BookOnDisk, isBook, openBook, requireBook, workingCopy } from "../open/index.ts";
import { admissionFor } from "../rollouts/index.ts";
import { type Identity, identityOf, identityWith } from "./identity.ts";

export interface PlaceRequest {
  /** Directory, opened now and closed at the end, or a book that the caller has opened to write. */
  readonly book: string | BookOnDisk;
  readonly clock?: Clock | undefined;
  /** Called once (default: the signer of an open book, else the user's own key, created if there is none). */
  readonly identity?: (() => Identity) | undefined;
  /** Policy revision, by id or digest, against which the freshness of every rollout is judged. */
  readonly target?: string | undefined;
  /** Drift budgets (default: up to 3 accepted, up to 5 quarantined). */
  readonly freshness?: FreshnessBudgets | undefined;
  readonly log?: ((line: string) => void) | undefined;
}

export interface RecordingPlace extends Identity {
  readonly book: BookOnDisk;
  readonly clock: Clock;
  readonly admit?: Awaited<ReturnType<typeof admissionFor>>;
  /** Closes the book if it was opened here. */
  leave(): Promise<void>;
}

/** `beforeNew` is called before a new book and a new key are made. */
export async function openPlace(
  request: PlaceRequest,
  { create, beforeNew }: { create: boolean; beforeNew?: (root: string) => Promise<void> },
): Promise<RecordingPlace> {
  const { book: given, target, freshness: budgets } = request;
  // The directory, for a book in a bucket that of the local copy.
  const root = typeof given === "string" ? await workingCopy(given) : given.root;
  const isNew = typeof given === "string" && !isBook(root);
  // A new book has no target.
  if (isNew && (!create || target !== undefined)) requireBook(root);
  if (isNew) await beforeNew?.(root);
  const clock = request.clock ?? (typeof given === "string" ? systemClock : given.clock);
  const known = typeof given === "string" ? undefined : given.signer;
  const identity = request.identity?.() ?? (known === undefined ? identityOf() : identityWith(known));
  const book =
    typeof given === "string"
      ? await openBook(root, { create, clock, signer: () => identity.signer })
      : given;
  const leave = async () => (typeof given === "string" ? book.close() : undefined);
  // A misspelt path creates a new book, so the log tells the user where the rollouts go.
  if (isNew) request.log?.(`made a new book at ${book.root}`);
  try {
    const judge = target === undefined ? {} : { admit: await admissionFor(book, { target, budgets }) };
    return { book, clock, ...identity, ...judge, leave };
  } catch (error) {
    await leave();
    throw error;
  }
}

/** Recorder of the gateway, or of the book. */
export function recorderAt(
  gateway: string | GatewayPlace | undefined,
  { log }: Pick<PlaceRequest, "log">,
): Recorder {
  const own = bookRecorder();
  if (gateway === undefined) return own;
  return gatewayRecorder(placeOf(gateway), own, { log });
}

/** Refuses a gateway that cannot record in the book to be made at `root`. */
export async function checkNewBook(gateway: string | GatewayPlace | undefined, root: string): Promise<void> {
  if (gateway !== undefined) await checkGatewayBook(placeOf(gateway), { root });
}

function placeOf(gateway: string | GatewayPlace): GatewayPlace {
  return typeof gateway === "string" ? { url: gateway } : gateway;
}
