import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { afterEach, describe, expect, it } from "vitest";
import { libraryHome } from "../../../test/support/library-home.ts";
import type { Signer } from "../../contract/index.ts";
import { openBook } from "../open/open-book.ts";
import { listRollouts } from "../rollouts/rollouts.ts";
import { startGatewayHost } from "./gateway-host.ts";
import { type Identity, identityOf } from "./identity.ts";

const servers: Server[] = [];

afterEach(() => {
  for (const server of servers.splice(0)) server.close();
});

/** A model that answers every call alike. */
async function startModel(): Promise<object> {
  const reply = JSON.stringify({
    ...{ id: "c", object: "chat.completion", model: "m" },
    choices: [{ index: 0, message: { role: "assistant", content: "hello" }, finish_reason: "stop" }],
    usage: { prompt_tokens: 3, completion_tokens: 1, total_tokens: 4 },
  });
  const server = createServer((request, response) => {
    request.resume().on("end", () => response.setHeader("content-type", "application/json").end(reply));
  });
  servers.push(server);
  await new Promise<void>((done) => server.listen(0, "127.0.0.1", done));
  const { port } = server.address() as AddressInfo;
  return {
    upstreams: { own: { baseUrl: `http://127.0.0.1:${port}/v1` } },
    models: { m: { upstream: "own" } },
  };
}

/** One that keeps its key to itself, as a program of the user's may give. */
function sealedOff({ signer, trusts }: Identity): Identity {
  const closed: Signer = {
    publicKey: signer.publicKey,
    attest: (subjects) => signer.attest(subjects),
    signHead: (head) => signer.signHead(head),
  };
  return { signer: closed, trusts };
}

describe("a gateway host", () => {
  it.each([
    ["in a thread", (identity: Identity) => identity],
    ["here, where the key cannot be shared", sealedOff],
  ])("records rollouts that its desk opens and closes, %s", async (_, given) => {
    const { path } = libraryHome();
    const identity = given(identityOf());
    const book = await openBook(path("runs"), { create: true, signer: () => identity.signer });
    const host = startGatewayHost({ book, identity, log: () => {} });
    const gateway = await host.open(await startModel());
    const { apiKey } = await gateway.desk.open({ id: "run-1", task: { id: "greet" }, group: undefined });
    const reply = await fetch(`${gateway.url}/v1/chat/completions`, {
      method: "POST",
      headers: { "content-type": "application/json", authorization: `Bearer ${apiKey}` },
      body: JSON.stringify({ model: "m", messages: [{ role: "user", content: "hi" }] }),
    });
    expect(reply.status).toBe(200);
    await reply.text();
    expect(await gateway.desk.status("run-1")).toMatchObject({ usage: { calls: 1, promptTokens: 3 } });
    const closed = await gateway.desk.close("run-1", { ending: { kind: "terminal" } });
    expect(closed).toMatchObject({ content: expect.stringMatching(/^sha256:/) });
    await expect(gateway.desk.close("run-2", {})).rejects.toMatchObject({ code: "unknown-rollout" });
    await gateway.close();
    await host.close();
    expect((await listRollouts(book)).map(({ rolloutId }) => rolloutId)).toEqual(["run-1"]);
    await book.close();
  });

  it("opens several gateways at once, and tells why one does not open", async () => {
    const { path } = libraryHome();
    const identity = identityOf();
    const book = await openBook(path("runs"), { create: true, signer: () => identity.signer });
    const host = startGatewayHost({ book, identity, log: () => {} });
    const config = await startModel();
    const one = await host.open({ ...config, worker: "one" });
    const two = await host.open({ ...config, worker: "two" });
    expect(one.url).not.toBe(two.url);
    await expect(host.open({ ...config, worker: "two" })).rejects.toMatchObject({ code: "gateway-running" });
    await Promise.all([one.close(), two.close()]);
    await host.close();
    await expect(host.open(config)).rejects.toMatchObject({ code: "gateway-died" });
    await book.close();
  });
});
