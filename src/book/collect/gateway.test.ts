import { writeFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { libraryHome } from "../../../test/support/library-home.ts";
import { collectGarbage } from "../maintain/collect-garbage.ts";
import { openBook, useBook } from "../open/open-book.ts";
import { listRollouts } from "../rollouts/rollouts.ts";
import { openGateway } from "./gateway.ts";

const config = { upstreams: { own: { baseUrl: "local:own" } }, models: { m: { upstream: "own" } } };
const own = async () =>
  Response.json({
    ...{ id: "c", object: "chat.completion", model: "m" },
    choices: [{ index: 0, message: { role: "assistant", content: "hello" }, finish_reason: "stop" }],
    usage: { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 },
  });

const post = (url: string, body: object, key = "") =>
  fetch(url, {
    method: "POST",
    headers: { "content-type": "application/json", authorization: `Bearer ${key}` },
    body: JSON.stringify(body),
  });

async function runOnce(url: string): Promise<void> {
  await post(`${url}/v1/rollouts`, { id: "run-1", task: { id: "greet" } });
  const messages = [{ role: "user", content: "hi" }];
  const reply = await post(`${url}/v1/chat/completions`, { model: "m", messages }, "rb-run-1");
  expect(reply.status).toBe(200);
  expect((await post(`${url}/v1/rollouts/run-1/close`, {})).status).toBe(200);
}

describe("openGateway on a book", () => {
  it("takes a configuration as an object, records into a book that it opens, and closes both", async () => {
    const { path } = libraryHome();
    const book = path("runs");
    const lines: string[] = [];
    const log = (line: string) => lines.push(line);
    const gateway = await openGateway({ book, config, port: 0, local: { own }, log });
    expect(lines).toContain(`made a new book at ${book}`);
    await runOnce(gateway.url);
    await expect(openGateway({ book, config, port: 0, local: { own } })).rejects.toThrow(
      `a gateway with the name "gateway" already uses ${book}. Stop it, or start this one with --worker NAME and --port PORT.`,
    );
    await gateway.close();
    expect((await collectGarbage(book, { dryRun: true })).packsLeft).toBe(0);
    await useBook(book, { mode: "read" }, async (opened) => {
      expect(await listRollouts(opened)).toMatchObject([{ rolloutId: "run-1", task: "greet", calls: 1 }]);
    });
  });

  it("takes a configuration from a file, options before what the file says, and leaves an open book open", async () => {
    const { path } = libraryHome();
    const { upstreams, models } = config;
    const yaml = `listen: { port: 1 }\nrecord: durable\nupstreams: ${JSON.stringify(upstreams)}\nmodels: ${JSON.stringify(models)}\n`;
    writeFileSync(path("gateway.yaml"), yaml);
    const book = await openBook(path("runs"), { create: true });
    const gateway = await openGateway({
      ...{ book, config: path("gateway.yaml"), port: 0, record: "async", local: { own } },
    });
    expect(gateway.config).toMatchObject({ record: "async", listen: { port: 0 } });
    await runOnce(gateway.url);
    await gateway.close();
    expect(await listRollouts(book)).toHaveLength(1);
    await book.close();
  });

  it("refuses a configuration that is not there or not right before it makes a book", async () => {
    const { path } = libraryHome();
    const book = path("runs");
    await expect(openGateway({ book, config: path("none.yaml") })).rejects.toMatchObject({
      code: "no-config",
    });
    await expect(openGateway({ book, config: { upstream: {} } })).rejects.toMatchObject({
      code: "bad-config",
    });
    await expect(openBook(book)).rejects.toMatchObject({ code: "no-book" });
  });
});
