import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { describe, expect, it, onTestFinished } from "vitest";
import { parseGatewayConfig } from "../../src/collect/gateway/config.ts";
import { readOutput } from "../../src/collect/rollout/agent/output.ts";
import { Cli } from "../support/cli.ts";
import { CLOSED_URL } from "../support/free-port.ts";

const FILES = ["agent.mjs", "gateway.yaml", "loop.yaml", "model.mjs", "tasks.jsonl"];

describe("rollbook init", () => {
  it("makes a book in the directory that is named, and says where", async () => {
    const cli = new Cli();
    const dir = join(cli.folder, "project");
    const [made] = await cli.json(`init ${dir}`);
    expect(made).toEqual({ book: join(dir, ".rollbook"), created: true, files: [] });
    expect(readdirSync(dir)).toEqual([".rollbook"]);
    expect((await cli.json(`init ${dir}`))[0].created).toBe(false);
  });

  it("--example writes a first project that names the simulated models", async () => {
    const cli = new Cli();
    const dir = join(cli.folder, "first");
    const { code, out, err } = await cli.run(["init", "--example", dir]);
    expect(code).toBe(0);
    for (const file of FILES) expect(out).toContain(`${join(dir, file)}: written`);
    expect(err).toContain("node model.mjs & rollbook run start --config loop.yaml");
    expect(err).toContain("docs/tutorial.md");
    const byNpx = await cli.run(["init", "--example", join(cli.folder, "second")], "", {
      npm_command: "exec",
    });
    expect(byNpx.err).toContain("node model.mjs & npx rollbook run start --config loop.yaml");
    expect(readdirSync(dir).sort()).toEqual([".rollbook", ...FILES].sort());
    const { upstreams, routes } = parseGatewayConfig(readFileSync(join(dir, "gateway.yaml"), "utf8"));
    expect(upstreams.server!.baseUrl).toBe("http://127.0.0.1:8791/v1");
    expect(routes.auto).toEqual(["small", "large"]);
  });

  it("--example writes an agent that is not to blame for a model that fails or cannot be reached", async () => {
    const cli = new Cli();
    await cli.ok(["init", "--example", cli.folder]);
    const { default: solve } = await import(pathToFileURL(join(cli.folder, "agent.mjs")).href);
    const replies = [503, 429, 400, 404];
    const plain = JSON.stringify({ error: "model not found" });
    const bodies = ["no", JSON.stringify({ error: { message: "no", type: "server_error" } }), "no", plain];
    const server = createServer((_, response) => response.writeHead(replies.shift()!).end(bodies.shift()));
    onTestFinished(() => void server.close());
    await new Promise<void>((listening) => server.listen(0, "127.0.0.1", listening));
    const ask = (url: string) =>
      solve(
        { question: "1 + 1", answer: 2 },
        {
          baseUrl: `${url}/v1`,
          rolloutConfig: {},
          signal: new AbortController().signal,
        },
      );
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    for (const status of [503, 429])
      expect(readOutput(await ask(url)).ending).toEqual({
        ...{ kind: "failed", owner: "provider" },
        message: `the model answered ${status}: no`,
      });
    await expect(ask(url)).rejects.toThrow("the model answered 400: no");
    await expect(ask(url)).rejects.toThrow(`the model answered 404: ${plain}`);
    expect(readOutput(await ask(CLOSED_URL)).ending).toMatchObject({
      ...{ kind: "failed", owner: "provider" },
      message: expect.stringContaining("cannot be reached"),
    });
  });

  it("--example writes an agent that pays for a model by its name, and for none without a price", async () => {
    const cli = new Cli();
    await cli.ok(["init", "--example", cli.folder]);
    const { default: solve } = await import(pathToFileURL(join(cli.folder, "agent.mjs")).href);
    const reply = { choices: [{ message: { content: "2" } }], usage: { total_tokens: 45 } };
    const server = createServer(async (request, response) => {
      const { model } = JSON.parse(Buffer.concat(await request.toArray()).toString());
      if (model === "auto") response.setHeader("x-rollbook-model", "small");
      response.end(JSON.stringify(reply));
    });
    onTestFinished(() => void server.close());
    await new Promise<void>((listening) => server.listen(0, "127.0.0.1", listening));
    const { port } = server.address() as AddressInfo;
    const costOf = async (model_id?: string) => {
      const asked = {
        ...{ baseUrl: `http://127.0.0.1:${port}/v1`, rolloutConfig: { model_id } },
        signal: new AbortController().signal,
      };
      return (await solve({ question: "1 + 1", answer: 2 }, asked)).reward.cost.value;
    };
    expect([await costOf(), await costOf("small"), await costOf("large")]).toEqual([
      45 * 0.2e-6,
      45 * 0.2e-6,
      45 * 5e-6,
    ]);
    await expect(costOf("huge")).rejects.toThrow("no price is known of the model huge");
  });

  it("--upstream puts another URL into the gateway's file, and is refused if it is none", async () => {
    const cli = new Cli();
    const dir = join(cli.folder, "first");
    const { err } = await cli.run(["init", "--example", dir, "--upstream", "https://models.example/v1"]);
    // The URL replaces the simulated models, so the next step does not start them.
    expect(err).toContain(`next: cd ${dir}; rollbook run start`);
    expect(err).toContain("in gateway.yaml, set `model` of each model to a name that your server knows");
    const { upstreams } = parseGatewayConfig(readFileSync(join(dir, "gateway.yaml"), "utf8"));
    expect(upstreams.server!.baseUrl).toBe("https://models.example/v1");
    for (const url of ["models", "ftp://models", 'http://a"b'])
      expect(await cli.run(["init", "--example", join(cli.folder, "x"), "--upstream", url])).toMatchObject({
        code: 2,
        err: expect.stringContaining("is not a URL of http or https"),
      });
    expect((await cli.run(["init", "--upstream", "http://a"])).err).toContain("without --example");
    expect(await cli.run(["init", "nested/dir", "--book", "foo"])).toMatchObject({
      code: 2,
      err: expect.stringContaining("the book is either nested/dir/.rollbook or foo"),
    });
  });

  it("--example overwrites nothing: with one file there, no other is written", async () => {
    const cli = new Cli();
    writeFileSync(join(cli.folder, "loop.yaml"), "mine");
    const { code, err } = await cli.run(["init", "--example", cli.folder]);
    expect([code, err]).toEqual([1, expect.stringContaining("is not overwritten")]);
    expect(readFileSync(join(cli.folder, "loop.yaml"), "utf8")).toBe("mine");
    expect(readdirSync(cli.folder)).toEqual(["loop.yaml"]);
  });
});
