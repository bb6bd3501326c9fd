#!/usr/bin/env node
/** Stands for rollbook_torch where only Rollbook's own cost is measured: answers at once, trains nothing but writes new bytes.
 *  Called like Python: fast-model.mjs -m rollbook_torch serve|train … */
import { createHash } from "node:crypto";
import { cpSync, readFileSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { join } from "node:path";
import { createInterface } from "node:readline";

const command = process.argv[4];
process.stdin.on("end", () => process.exit(0));
if (command === "serve") serve();
else train();

function serve() {
  let tokenizer;
  const server = createServer((request, response) => {
    let text = "";
    request.on("data", (chunk) => {
      text += chunk;
    });
    request.on("end", () => {
      const reply = (body) =>
        response.setHeader("content-type", "application/json").end(JSON.stringify(body));
      if (request.url === "/metrics") return response.end("rollbook_torch_decode_seconds_total 0\n");
      const body = JSON.parse(text);
      if (request.url === "/admin/revisions") {
        const file = readFileSync(join(body.folder, "characters.json"));
        tokenizer = `sha256:${createHash("sha256").update(file).digest("hex")}`;
        return reply({ ...body, tokenizer });
      }
      const digit = body.seed % 10;
      return reply({
        ...{
          id: "x",
          object: "chat.completion",
          created: 0,
          model: body.model,
          prompt_token_ids: [1, 4, 13, 5, 14],
        },
        choices: [
          {
            ...{ index: 0, finish_reason: "stop", token_ids: [3 + digit, 3, 2] },
            message: { role: "assistant", content: `${digit}0` },
            logprobs: { content: [-0.5, -0.25, -0.125].map((logprob) => ({ token: "0", logprob })) },
          },
        ],
        usage: { prompt_tokens: 5, completion_tokens: 3, total_tokens: 8 },
      });
    });
  });
  server.keepAliveTimeout = 60_000;
  server.listen(0, "127.0.0.1", () =>
    console.log(JSON.stringify({ url: `http://127.0.0.1:${server.address().port}` })),
  );
  process.stdin.resume();
}

function train() {
  console.log(JSON.stringify({ ready: "none" }));
  createInterface({ input: process.stdin }).on("line", (line) => {
    const { parent, out } = JSON.parse(line);
    cpSync(parent.folder, out, { recursive: true });
    const weights = readFileSync(join(out, "model.safetensors"));
    weights.writeFloatLE(Math.random(), weights.length - 4);
    writeFileSync(join(out, "model.safetensors"), weights);
    const digest = `sha256:${createHash("sha256").update("rollbook.model-weights.v1\0").update(weights).digest("hex")}`;
    const report = {
      ...{ digest, rows: 1, stale: 0, optimizer: "kept", mismatch: { largest: 0, mean: 0 } },
      ...{ tokens: { all: 1, trained: 1, share: 1 }, groups: { all: 1, flat: 0 } },
    };
    console.log(JSON.stringify({ report }));
  });
}
