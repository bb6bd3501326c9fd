/** Whether all models of a route understand the same requests. A request is passed on as it came, so a route whose models speak
 *  different dialects would fail at the first call that its router sends the other way.
 *  In: a checked configuration. Out: the first route that mixes, in words. Pure. */

/** What the configuration says of upstreams, models and routes. */
interface RouteNames {
  readonly upstreams: Readonly<Record<string, SpokenAt>>;
  readonly models: Readonly<Record<string, { readonly upstream: string }>>;
  readonly routes: Readonly<Record<string, readonly string[]>>;
}

interface SpokenAt {
  readonly dialect?: "openai" | "anthropic" | "both" | undefined;
  readonly baseUrl: string;
  readonly auth: string;
  readonly headers: Readonly<Record<string, string>>;
}

export function mixedRoute({ routes, models, upstreams }: RouteNames): string | undefined {
  for (const [alias, names] of Object.entries(routes)) {
    const speaking = (wanted: "openai" | "anthropic") =>
      names.find((name) => spokenBy(upstreams[models[name]!.upstream]!) === wanted);
    const [openai, anthropic] = [speaking("openai"), speaking("anthropic")];
    if (openai === undefined || anthropic === undefined) continue;
    const placeOf = (name: string) => `${name} (upstream ${models[name]!.upstream})`;
    return `the route ${alias} mixes ${placeOf(openai)}, which speaks OpenAI's dialect, and ${placeOf(anthropic)}, which speaks Anthropic's. Requests are passed on and not translated, so one of them would refuse every call. Give each dialect a route of its own, or state \`dialect: both\` for an upstream that speaks both`;
  }
  return undefined;
}

/** Stated, or told by the address and the headers that only Anthropic has. */
function spokenBy({ dialect, baseUrl, auth, headers }: SpokenAt): "openai" | "anthropic" | "both" {
  if (dialect !== undefined) return dialect;
  const isAnthropic =
    auth === "x-api-key" ||
    /^https?:\/\/([^/]*\.)?anthropic\.com([:/]|$)/i.test(baseUrl) ||
    Object.keys(headers).some((name) => name.toLowerCase() === "anthropic-version");
  return isAnthropic ? "anthropic" : "openai";
}
