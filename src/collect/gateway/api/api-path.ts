/** The paths of the API. In: the URL of a request. Out: the plain path, and the rollout that it names (`/r/<id>/v1/…`). */

const API_ROOT = "/v1";

export interface ApiPath {
  /** `/v1/chat/completions`, without query. */
  readonly path: string;
  readonly query: string;
  readonly rollout: string | undefined;
}

export function parsePath(url: string): ApiPath {
  // What almost every request asks for.
  if (url === "/v1/chat/completions") return { path: url, query: "", rollout: undefined };
  const mark = url.indexOf("?");
  const query = mark < 0 ? "" : url.slice(mark);
  const whole = mark < 0 ? url : url.slice(0, mark);
  const [, rollout, rest] = /^\/r\/([^/]+)(\/.*)?$/.exec(whole) ?? [];
  // A base URL that ends in /v1 makes some SDKs say it twice.
  const path = (rollout === undefined ? whole : (rest ?? "/")).replace(/^(?:\/v1)+(?=\/|$)/, "/v1");
  return { path, query, rollout: rollout === undefined ? undefined : decodePart(rollout) };
}

/** Path and query below `/v1`, as an upstream is asked for them. */
export function upstreamPath({ path, query }: ApiPath): string {
  return path.slice(API_ROOT.length) + query;
}

/** A part of a path as it was meant; one that is no encoding is meant as it stands. */
export function decodePart(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}
