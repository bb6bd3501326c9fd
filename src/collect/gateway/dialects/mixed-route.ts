/** Checks that all models of a route understand the same requests. The gateway passes a request on unchanged. A
 *  route with models of different dialects would fail at the first call to a model of the other dialect. In: a
 *  checked configuration. Out: a description of the first mixed route. Pure. */
import { VENDORS, type Vendor } from "./dialect.ts";

/** The upstreams, models and routes of the configuration. */
interface RouteNames {
  readonly upstreams: Readonly<Record<string, SpokenAt>>;
  readonly models: Readonly<Record<string, { readonly upstream: string }>>;
  readonly routes: Readonly<Record<string, readonly string[]>>;
}

interface SpokenAt {
  readonly dialect?: Vendor | "both" | undefined;
  readonly baseUrl: string;
  readonly auth: string;
  readonly headers: Readonly<Record<string, string>>;
}

/** The vendor's name in messages, and the signs of its formats at an upstream without `dialect`. */
const VENDOR_FACTS: Readonly<Record<Vendor, { owner: string; isShownBy: (at: SpokenAt) => boolean }>> = {
  // The default: most servers speak these formats, so an upstream without other signs counts as OpenAI.
  openai: { owner: "OpenAI's", isShownBy: () => false },
  anthropic: {
    owner: "Anthropic's",
    isShownBy: ({ auth, baseUrl, headers }) =>
      auth === "x-api-key" ||
      /^https?:\/\/([^/]*\.)?anthropic\.com([:/]|$)/i.test(baseUrl) ||
      Object.keys(headers).some((name) => name.toLowerCase() === "anthropic-version"),
  },
};

export function mixedRoute({ routes, models, upstreams }: RouteNames): string | undefined {
  const placeOf = (name: string) => `${name} (upstream ${models[name]!.upstream})`;
  for (const [alias, names] of Object.entries(routes)) {
    const firstOf = (vendor: Vendor) =>
      names.find((name) => spokenBy(upstreams[models[name]!.upstream]!) === vendor);
    const speakers = VENDORS.flatMap((vendor) => {
      const name = firstOf(vendor);
      return name === undefined ? [] : [{ place: placeOf(name), owner: VENDOR_FACTS[vendor].owner }];
    });
    const [one, other] = speakers;
    if (one === undefined || other === undefined) continue;
    return `the route ${alias} mixes ${one.place}, which speaks ${one.owner} dialect, and ${other.place}, which speaks ${other.owner}. Requests are passed on and not translated, so one of them would refuse every call. Give each dialect a route of its own, or state \`dialect: both\` for an upstream that speaks both`;
  }
  return undefined;
}

/** Says that a model speaks the formats of another vendor than a request. */
export function otherVendor(model: string, { speaks, asked }: { speaks: Vendor; asked: Vendor }): string {
  const [own, other] = [VENDOR_FACTS[speaks].owner, VENDOR_FACTS[asked].owner];
  return `the upstream of ${model} speaks ${own} dialect (\`dialect: ${speaks}\`), and the request is in ${other}. The gateway does not translate requests. Ask for a model that speaks ${other}, or state \`dialect: both\` if the upstream speaks both.`;
}

/** The stated dialect, or the one that the address and the headers indicate. */
function spokenBy(at: SpokenAt): Vendor | "both" {
  return at.dialect ?? VENDORS.find((vendor) => VENDOR_FACTS[vendor].isShownBy(at)) ?? "openai";
}
