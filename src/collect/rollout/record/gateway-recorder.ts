/** Records rollouts through a gateway over HTTP. The gateway sees the model calls and seals them.
 *  In: the gateway's URL and token. Out: a Recorder. Each attempt is a separate rollout at the gateway, because
 *  recorded calls cannot be removed. An abandoned attempt is sealed with the reason, outside every baseline. The book's
 *  recorder seals a rollout that called no model. */
import { type Digest, given, isRollbookError, RollbookError, reasonOf } from "../../../base/index.ts";
import type { Ending } from "../../../contract/index.ts";
import type { RolloutDesk } from "../../rollout-desk.ts";
import { failedBy, type RolloutUsage } from "../agent/index.ts";
import { claimedName, claimedNames } from "../work/index.ts";
import { checkGatewayBook, type GatewayPlace, gatewayUrls } from "./check-gateway-book.ts";
import { AwayGateway, type GatewayWait } from "./gateway-wait.ts";
import type { Recorded, Recorder, RolloutOpening } from "./recorder.ts";

/** The score that marked a reported result, before endings had the field `declaredBy`. */
const OLD_MARK = "reported";

export function gatewayRecorder(place: GatewayPlace, fallback: Recorder, wait: GatewayWait = {}): Recorder {
  const desks = desksOf(place);
  const away = new AwayGateway(gatewayUrls(place), wait);
  const sealedHere = new Set<Digest>();
  /** Attempts of this process that lost their gateway, with its URL. */
  const cutOff = new Map<string, string>();
  return {
    sealedHere: (envelope) => sealedHere.delete(envelope),
    checkBook: (book) => checkGatewayBook(place, book),
    namesOf: (item, last) => namesUpTo(item, last),
    // False for a rollout that a gateway sealed by itself after a crash.
    isReported: ({ ending, scores }) =>
      ending.declaredBy !== undefined || scores.some(({ name }) => name === OLD_MARK),
    async open(opening) {
      const token = opening.token ?? opening.attempt;
      const id = claimedName({ item: opening.rolloutId, token });
      const openAt = async (each: RecorderDesk) => {
        for (const earlier of namesUpTo(opening.rolloutId, token - 1)) {
          await closeEarlier(each, earlier, cutOff.get(earlier));
          cutOff.delete(earlier);
        }
        return { desk: each, apiKey: (await each.open(openingBody(id, opening))).apiKey };
      };
      const { signal } = opening;
      // An attempt that reached no gateway does not count as an attempt.
      const { desk, apiKey } = await away.reach(() => atOne(inTurn(desks, id), openAt), signal);
      const watched = async <T>(work: object | Promise<object>): Promise<T> => {
        try {
          return (await work) as T;
        } catch (error) {
          if (isDown(error)) cutOff.set(id, desk.url);
          throw error;
        }
      };
      const status = () =>
        watched<{ readonly usage: RolloutUsage; readonly lastRefusal?: string }>(desk.status(id));
      const closeNow = (body: object) => watched<Partial<Recorded>>(desk.close(id, body));
      // With several gateways, another gateway records the next attempt sooner than this one comes back.
      const close = (body: object) =>
        desks.length > 1 ? closeNow(body) : away.reach(() => closeNow(body), signal);
      return {
        baseUrl: `${desk.url}/v1`,
        apiKey,
        usage: async () => (await status()).usage,
        lastRefusal: async () => (await status()).lastRefusal,
        async close(closing) {
          const { scores, finalState } = closing;
          const ending: Ending = { declaredBy: "executor", ...closing.ending };
          const { content, envelope } = await close({ ending, scores, finalState });
          if (content !== undefined && envelope !== undefined) {
            if (place.desk !== undefined) sealedHere.add(envelope);
            return { content, envelope, blobs: [] };
          }
          return (await fallback.open(opening)).close({ ...closing, ending });
        },
        async abandon(ending) {
          await close({ ending: { ...ending, declaredBy: undefined } });
        },
      };
    },
  };
}

/** Refusals of a gateway to open a rollout whose name an earlier attempt has: closed, still open after its worker was
 *  killed, or damaged by a crash. */
const NAME_TAKEN: readonly unknown[] = ["rollout-closed", "rollout-exists", "rollout-damaged"];

/** True if a recording could not begin because an earlier attempt has its name. A recreated queue counts claims from 1
 *  again. The next claim has another name, and closes an attempt that is still open. */
export function isNameTaken(error: unknown): boolean {
  return error instanceof RollbookError && NAME_TAKEN.includes(error.fields.refusal);
}

function namesUpTo(item: string, last: number): readonly string[] {
  return Array.from({ length: last }, (_, i) => claimedNames({ item, token: i + 1 })).flat();
}

/** Leaves out undefined fields, which do not exist in JSON. */
function openingBody(id: string, opening: RolloutOpening): object {
  const { environment, task, assignment, group, seed, dataSource, maxTurns, budgetUsd } = opening;
  const { worker, attempt, claim, experiment, router } = opening;
  return {
    ...{ id, environment, task: given(task), seed: String(seed), dataSource },
    ...given({ assignment, group, maxTurns, budgetUsd, router }),
    run: { worker, attempt, ...given({ claim, experiment }) },
  };
}

/** Closes an attempt whose worker or gateway died. Otherwise it would stay open until its idle timeout. The gateway
 *  leaves a closed attempt unchanged and does not know an attempt that was never opened. Another worker cannot tell
 *  these two apart. */
function closeEarlier(desk: RecorderDesk, rollout: string, gateway: string | undefined): Promise<void> {
  const what =
    gateway === undefined
      ? "its worker or its gateway ended before it did"
      : `the gateway at ${gateway} could not be reached before it ended`;
  const message = `${what}; the rollout was claimed again`;
  const ending: Ending = { kind: "failed", owner: "infrastructure", message };
  return desk.closeIfOpen(rollout, { ending });
}

interface RecorderDesk extends RolloutDesk {
  readonly url: string;
  /** Accepts a refusal, which means that there is nothing to close. */
  closeIfOpen(rollout: string, closing: object): Promise<void>;
}

function desksOf(place: GatewayPlace): readonly RecorderDesk[] {
  const urls = gatewayUrls(place);
  return place.desk === undefined
    ? urls.map((url) => deskOver(place, url))
    : [deskHere(place.desk, urls[0] ?? place.url)];
}

/** Rotates the list by a hash of the rollout's id, so that gateways share the work. */
function inTurn(desks: readonly RecorderDesk[], id: string): readonly RecorderDesk[] {
  let sum = 0;
  for (const byte of Buffer.from(id)) sum = (31 * sum + byte) >>> 0;
  const first = sum % desks.length;
  return [...desks.slice(first), ...desks.slice(0, first)];
}

/** Does the work at the first gateway that is up. Any other refusal is final: all gateways would refuse. */
async function atOne<T>(
  desks: readonly RecorderDesk[],
  work: (desk: RecorderDesk) => Promise<T>,
): Promise<T> {
  for (const [i, desk] of desks.entries()) {
    try {
      return await work(desk);
    } catch (error) {
      if (!isDown(error) || i === desks.length - 1) throw error;
    }
  }
  throw failedBy("infrastructure", "no gateway is named. Give its URL.");
}

function deskOver(place: GatewayPlace, url: string): RecorderDesk {
  const own = (rollout: string) => `${url}/v1/rollouts/${encodeURIComponent(rollout)}`;
  return {
    url,
    open: (opening) => ask(place, `${url}/v1/rollouts`, opening) as Promise<{ apiKey: string }>,
    status: (rollout) => ask(place, own(rollout)) as Promise<object>,
    close: (rollout, closing) => ask(place, `${own(rollout)}/close`, closing) as Promise<object>,
    async closeIfOpen(rollout, closing) {
      const response = await send(place, `${own(rollout)}/close`, closing);
      await response.body?.cancel();
    },
  };
}

/** A gateway in this process refuses by throwing: a failure of the infrastructure, like an error status over HTTP. */
function deskHere(desk: RolloutDesk, url: string): RecorderDesk {
  const refused = (cause: unknown): never => {
    const message = `the gateway refused ${url}: ${reasonOf(cause).slice(0, 500)}`;
    throw refusal(message, isRollbookError(cause) ? cause.code : undefined, { cause });
  };
  // Removes undefined fields, which do not exist in JSON.
  const plain = (body: object) => JSON.parse(JSON.stringify(body)) as object;
  return {
    url,
    open: (opening) => desk.open(opening).catch(refused),
    status: (rollout) => desk.status(rollout),
    close: (rollout, closing) => desk.close(rollout, plain(closing)).catch(refused),
    closeIfOpen: (rollout, closing) =>
      desk.close(rollout, plain(closing)).then(
        () => {},
        () => {},
      ),
  };
}

/** Sends a POST with the body, or a GET without one. */
async function ask(place: GatewayPlace, url: string, body?: object): Promise<unknown> {
  const response = await send(place, url, body);
  const text = await response.text();
  if (response.ok) return JSON.parse(text);
  const message = `the gateway refused ${url}: ${response.status} ${text.slice(0, 500)}`;
  throw response.status >= 500
    ? down(url, message)
    : refusal(message, response.headers.get("x-rollbook-refusal") ?? undefined);
}

function refusal(message: string, code: string | undefined, options?: ErrorOptions): RollbookError {
  const fields = { owner: "infrastructure", refusal: code };
  return new RollbookError("failed-infrastructure", fields, message, options);
}

/** The gateway cannot be reached or cannot record. Another gateway may. */
function down(
  url: string,
  message: string,
  { isAway = false, ...options }: ErrorOptions & { isAway?: boolean } = {},
): RollbookError {
  const fields = { owner: "infrastructure", down: url, isAway };
  return new RollbookError("failed-infrastructure", fields, message, options);
}

function isDown(error: unknown): boolean {
  return error instanceof RollbookError && error.fields.down !== undefined;
}

async function send({ token }: GatewayPlace, url: string, body?: object): Promise<Response> {
  return fetch(url, {
    headers: {
      "content-type": "application/json",
      ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
    },
    ...(body === undefined ? {} : { method: "POST", body: JSON.stringify(body) }),
  }).catch((cause: unknown) => {
    const message = `the gateway at ${new URL(url).origin} cannot be reached: ${reasonOf(cause)}.`;
    throw down(url, message, { cause, isAway: true });
  });
}
