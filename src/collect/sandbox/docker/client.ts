/** The subset of Docker's HTTP API that the engine needs, over its unix socket.
 *  In: method, path, body. Out: parsed answers or the demultiplexed output of an exec. Written here because the usual
 *  client brings sixty packages and install scripts. Knows nothing of sandboxes. */
import { Agent, type IncomingMessage, request } from "node:http";
import type { Readable } from "node:stream";
import { RollbookError, reasonOf } from "../../../base/index.ts";

interface ExecStream {
  readonly onChunk: (stream: "stdout" | "stderr", chunk: Uint8Array) => void;
  readonly stdin: Uint8Array;
}

export class DockerClient {
  readonly #socketPath: string;
  readonly #agent = new Agent({ keepAlive: true });

  constructor(socketPath: string) {
    this.#socketPath = socketPath;
  }

  /** Returns undefined for a status listed in `expect`. Any other refusal throws. */
  async call(
    method: "GET" | "POST" | "DELETE",
    path: string,
    { body, expect = [] }: { body?: unknown; expect?: readonly number[] } = {},
  ): Promise<unknown> {
    const text = body === undefined ? undefined : JSON.stringify(body);
    const answer = await this.#request(method, path, { text });
    const content = (await readAll(answer)).toString();
    const status = answer.statusCode ?? 0;
    if (expect.includes(status)) return undefined;
    if (status >= 400) throw refused(`${method} ${path}`, status, content);
    return content === "" ? undefined : parseBody(content);
  }

  /** Sends a tar stream. The answer is a sequence of JSON documents, and one of them may report an error. */
  async upload(path: string, tar: Readable): Promise<void> {
    const answer = await this.#request("POST", path, { stream: tar });
    const content = (await readAll(answer)).toString();
    const status = answer.statusCode ?? 0;
    if (status >= 400 || /"error":/.test(content))
      throw refused(`POST ${path}`, status, content.slice(-1000));
  }

  /** Starts an exec and resolves when its output ends. */
  startExec(id: string, { onChunk, stdin }: ExecStream): Promise<void> {
    return new Promise((resolve, reject) => {
      const fail = (cause: unknown) => reject(unreachable(this.#socketPath, cause));
      const call = request({
        socketPath: this.#socketPath,
        method: "POST",
        path: `/exec/${id}/start`,
        headers: { "Content-Type": "application/json", Connection: "Upgrade", Upgrade: "tcp" },
      });
      const read = (stream: Readable, head?: Uint8Array) => {
        const push = demultiplexer(onChunk);
        if (head !== undefined && head.length > 0) push(head);
        stream.on("data", push).on("error", fail).on("end", resolve).on("close", resolve);
      };
      call.on("error", fail);
      call.on("upgrade", (_answer, socket, head) => {
        read(socket, head);
        socket.end(stdin); // Half-closing the socket ends the program's input.
      });
      call.on("response", (answer) => {
        if ((answer.statusCode ?? 0) < 400) return read(answer);
        readAll(answer).then(
          (content) => reject(refused(`exec ${id}`, answer.statusCode ?? 0, content.toString())),
          fail,
        );
      });
      call.end(JSON.stringify({ Detach: false, Tty: false }));
    });
  }

  close(): void {
    this.#agent.destroy();
  }

  #request(
    method: string,
    path: string,
    { text, stream }: { text?: string | undefined; stream?: Readable },
  ): Promise<IncomingMessage> {
    return new Promise((resolve, reject) => {
      const type = stream === undefined ? "application/json" : "application/x-tar";
      const call = request(
        { socketPath: this.#socketPath, agent: this.#agent, method, path, headers: { "Content-Type": type } },
        resolve,
      );
      call.on("error", (cause) => reject(unreachable(this.#socketPath, cause)));
      if (stream === undefined) call.end(text);
      else stream.on("error", reject).pipe(call);
    });
  }
}

/** Parses frames, split anywhere: 8 bytes of header (stream, 3 zeros, big-endian length), payload. Exported for
 *  tests. */
export function demultiplexer(onChunk: ExecStream["onChunk"]): (chunk: Uint8Array) => void {
  const header = Buffer.alloc(8);
  let headerBytes = 0;
  let left = 0;
  return (chunk) => {
    let at = 0;
    while (at < chunk.length) {
      if (left === 0) {
        header[headerBytes++] = chunk[at++]!;
        if (headerBytes < 8) continue;
        headerBytes = 0;
        left = header.readUInt32BE(4);
        continue;
      }
      const part = chunk.subarray(at, Math.min(chunk.length, at + left));
      onChunk(header[0] === 2 ? "stderr" : "stdout", part);
      at += part.length;
      left -= part.length;
    }
  };
}

async function readAll(answer: Readable): Promise<Buffer> {
  const chunks: Buffer[] = [];
  for await (const chunk of answer) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks);
}

function parseBody(content: string): unknown {
  try {
    return JSON.parse(content);
  } catch {
    return content; // /_ping answers with plain "OK".
  }
}

function refused(what: string, status: number, content: string): RollbookError {
  const said = content.trim().slice(0, 500);
  return new RollbookError(
    "sandbox-docker-refused",
    { what, status, said },
    `Docker refused ${what} with ${status}: ${said}.`,
  );
}

function unreachable(socketPath: string, cause: unknown): RollbookError {
  return new RollbookError(
    "sandbox-docker-unreachable",
    { socketPath },
    `Docker does not answer at ${socketPath} (${reasonOf(cause)}). Start the daemon, or choose another engine.`,
    { cause },
  );
}
