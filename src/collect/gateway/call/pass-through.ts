/** A request that is handed to an upstream and back without being recorded. */
import type { IncomingMessage, ServerResponse } from "node:http";
import type { Target, Upstream } from "../upstream/index.ts";
import { passedHeaders, returnedHeaders } from "./outgoing.ts";
import { spliceFields } from "./splice-json.ts";

export function passThrough(options: {
  upstream: Upstream;
  model: string;
  target: Target;
  body: Buffer;
  path: string;
  request: IncomingMessage;
  response: ServerResponse;
}): void {
  const { upstream, model, target, body, path, request, response } = options;
  const sent =
    model === target.model ? body : Buffer.from(spliceFields(body.toString(), { model: target.model }));
  const exchange = upstream.send(
    { method: "POST", path, headers: passedHeaders(request.rawHeaders), body: sent },
    {
      onStart: (status, headers) => void response.writeHead(status, returnedHeaders(headers)),
      onData: (chunk) => {
        if (response.write(chunk)) return true;
        response.once("drain", () => exchange.resume());
        return false;
      },
      onEnd: () => void response.end(),
      onError: (error) => {
        if (response.headersSent) response.destroy();
        else response.writeHead(502, { "content-type": "application/json" }).end(JSON.stringify({ error }));
      },
    },
  );
  response.once("close", () => exchange.abort());
}
