/** The paths of the API. In: the URL of a request. Out: the plain path, and the rollout named in it
 *  (`/r/<id>/v1/…`). */

const API_ROOT = "/v1";

export interface ApiPath {
  /** For example `/v1/chat/completions`, without the query. */
  readonly path: string;
  readonly query: string;
  readonly rollout: string | undefined;
}

export function parsePath(url: string): ApiPath {
  // The path of almost every request.
  if (url === "/v1/chat/completions") return { path: url, query: "", rollout: undefined };
  const mark = url.indexOf("?");
  const query = mark < 0 ? "" : url.slice(mark);
  const whole = mark < 0 ? url : url.slice(0, mark);
  const [, rollout, rest] = /^\/r\/([^/]+)(\/.*)?$/.exec(whole) ?? [];
  // Some SDKs repeat the /v1 of a base URL that ends in /v1.
  const path = (rollout === undefined ? whole : (rest ?? "/")).replace(/^(?:\/v1)+(?=\/|$)/, "/v1");
  return { path, query, rollout: rollout === undefined ? undefined : decodePart(rollout) };
}

/** Path and query below `/v1`, for the request to an upstream. */
export function upstreamPath({ path, query }: ApiPath): string {
  return path.slice(API_ROOT.length) + query;
}

/** Decodes a part of a path. A part that is not valid percent-encoding is used as it is. */
export function decodePart(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}
