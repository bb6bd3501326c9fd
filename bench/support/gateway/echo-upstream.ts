/** An upstream for crash trials: replies with the requested word, at once or as a stream. */
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";

export interface EchoUpstream {
  readonly url: string;
  close(): void;
}

export async function openEcho(): Promise<EchoUpstream> {
  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on("data", (chunk: Buffer) => chunks.push(chunk));
    request.on("end", () => {
      const { messages, stream } = JSON.parse(Buffer.concat(chunks).toString());
      const content = `said ${messages[0].content}`;
      if (!stream) {
        const choices = [{ index: 0, message: { role: "assistant", content }, finish_reason: "stop" }];
        response.writeHead(200, { "content-type": "application/json" }).end(JSON.stringify({ choices }));
        return;
      }
      response.writeHead(200, { "content-type": "text/event-stream" });
      const delta = { choices: [{ index: 0, delta: { role: "assistant", content } }] };
      response.write(`data: ${JSON.stringify(delta)}\n\n`);
      setImmediate(() => response.end("data: [DONE]\n\n"));
    });
  });
  await new Promise<void>((done) => server.listen(0, "127.0.0.1", done));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    close() {
      server.closeAllConnections();
      server.close();
    },
  };
}
