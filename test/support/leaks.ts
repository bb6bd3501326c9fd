/** True if bytes reveal a secret. Uses another method than the gateway: decodes everything that can be decoded, and
 *  searches the result for the secret. */

export function leaks(bytes: Uint8Array, secret: string): boolean {
  const texts = new Set([Buffer.from(bytes).toString("latin1"), Buffer.from(bytes).toString()]);
  let latest = [...texts];
  for (let round = 0; round < 6; round++) {
    const decoded = new Set(latest.flatMap((text) => DECODERS.map((decode) => decode(text))));
    latest = [...decoded].filter((text) => !texts.has(text));
    for (const text of latest) texts.add(text);
  }
  return [...texts].some((text) => text.includes(secret)) || inBase64(texts, secret);
}

const DECODERS: readonly ((text: string) => string)[] = [
  (text) =>
    text.replaceAll(/\\+u([0-9a-f]{4})/gi, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16))),
  (text) =>
    text.replaceAll(/%([0-9a-f]{2})/gi, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16))),
  (text) => text.replaceAll(/\\+([/"\\])/g, "$1"),
  (text) => text.replaceAll(/(?:\\+[nr]|\s)+/g, ""),
  (text) => text.replaceAll("\0", ""),
];

function inBase64(texts: Iterable<string>, secret: string): boolean {
  const runs = new Set([...texts].flatMap((text) => text.match(/[A-Za-z0-9+/_-]{10,}/g) ?? []));
  for (const run of runs)
    for (let cut = 0; cut < 4; cut++)
      if (Buffer.from(run.slice(cut), "base64url").includes(secret)) return true;
  return false;
}
