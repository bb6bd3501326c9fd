/** Passes a request to an upstream and its reply back. In: a request. Out: the reply. Records nothing. */
import type { IncomingMessage, ServerResponse } from "node:http";
import type { Target, Upstream } from "../upstream/index.ts";
import { renameModel, textOfBody } from "../wire/index.ts";
import { passedHeaders, passedPath, type Returned } from "./outgoing.ts";

export function passThrough(options: {
  upstream: Upstream;
  model: string;
  target: Target;
  body: Buffer;
  path: string;
  request: IncomingMessage;
  response: ServerResponse;
  returned: Returned;
  /** Size limit of an error body. */
  maxBytes: number;
}): void {
  const { upstream, model, target, body, path, request, response, returned, maxBytes } = options;
  /** An error is held until it is complete. */
  let held: { readonly status: number; readonly headers: string[]; readonly chunks: Buffer[] } | undefined;
  let bytes = 0;
  const sent =
    model === target.model
      ? body
      : renameModel(body, { text: textOfBody(body), asked: model, name: target.modelJson });
  const exchange = upstream.send(
    { method: "POST", path: passedPath(path), headers: passedHeaders(request.rawHeaders), body: sent },
    {
      onStart: (status, given) => {
        const headers = returned.headers(given);
        if (returned.isHeld(status)) held = { status, headers, chunks: [] };
        else response.writeHead(status, headers);
      },
      onData: (chunk) => {
        bytes += chunk.length;
        if (held !== undefined && bytes > maxBytes) response.destroy();
        if (held !== undefined) return held.chunks.push(chunk) > 0;
        if (response.write(chunk)) return true;
        response.once("drain", () => exchange.resume());
        return false;
      },
      onEnd: () => {
        const whole = held && returned.whole(held.headers, held.chunks);
        if (whole !== undefined) response.writeHead(held!.status, whole.headers);
        response.end(whole?.body);
      },
      onError: (error) => {
        if (response.headersSent) response.destroy();
        else response.writeHead(502, { "content-type": "application/json" }).end(JSON.stringify({ error }));
      },
    },
  );
  response.once("close", () => exchange.abort());
}
