#!/usr/bin/env node
/** Stands for rollbook_torch in tests of the windows around it. The server answers at once. The trainer writes weights
 *  that are a function of parent and batch. Called like Python: stand-in-model.mjs -m rollbook_torch serve|train …
 *  STAND_IN names a folder. The trainer appends each step to `trained.jsonl` there, and the server each revision that
 *  it loads to `loaded.jsonl`. A file `serving` or `training` ends the process once: the server after as many answers
 *  as the file holds, the trainer between checkpoint and report. */
import { createHash } from "node:crypto";
import { appendFileSync, cpSync, existsSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { join } from "node:path";
import { createInterface } from "node:readline";

const notes = process.env.STAND_IN;
process.stdin.on("end", () => process.exit(0));
if (process.argv[4] === "serve") serve();
else train();

function serve() {
  let answered = 0;
  const known = new Set();
  const server = createServer(async (request, response) => {
    let text = "";
    for await (const chunk of request) text += chunk;
    const reply = (body, status = 200) =>
      response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(body));
    if (request.url === "/metrics") return response.end("rollbook_torch_decode_seconds_total 0\n");
    const body = JSON.parse(text);
    if (request.url === "/admin/revisions") {
      known.add(body.revision);
      if (notes !== undefined) appendFileSync(join(notes, "loaded.jsonl"), `${JSON.stringify(body)}\n`);
      const tokenizer = hash(readFileSync(join(body.folder, "characters.json")));
      return reply({ ...body, tokenizer });
    }
    if (!known.has(body.model)) return reply({ error: { message: `${body.model} is not loaded` } }, 404);
    endAfter("serving", ++answered);
    const digit = body.seed % 10;
    return reply({
      ...{ id: "x", object: "chat.completion", created: 0, model: body.model },
      prompt_token_ids: [1, 4, 13, 5, 14],
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
  server.keepAliveTimeout = 60_000;
  server.listen(0, "127.0.0.1", () =>
    console.log(JSON.stringify({ url: `http://127.0.0.1:${server.address().port}` })),
  );
  process.stdin.resume();
}

function train() {
  console.log(JSON.stringify({ ready: "none" }));
  createInterface({ input: process.stdin }).on("line", (line) => {
    const request = JSON.parse(line);
    console.log(JSON.stringify({ report: step(request) }));
  });
}

function step({ batch, parent, out, sources }) {
  const known = join(out, "report.json");
  if (existsSync(known)) return { ...JSON.parse(readFileSync(known, "utf8")), earlier: true };
  const file = readFileSync(batch.path);
  const header = JSON.parse(file.subarray(8, 8 + Number(file.readBigUInt64LE(0))).toString());
  const about = JSON.parse(header.__metadata__.rollbook);
  const rows = header.row_start.shape[0];
  const isStale = about.sources.some(({ digest }) => digest !== about.target.digest);
  const weights = readFileSync(join(parent.folder, "model.safetensors"));
  createHash("sha256")
    .update(`${parent.digest} ${batch.digest}`)
    .digest()
    .copy(weights, weights.length - 4, 0, 2);
  const report = {
    digest: hash(Buffer.concat([Buffer.from("rollbook.model-weights.v1\0"), weights])),
    ...{ rows, stale: isStale ? rows : 0, optimizer: "kept", mismatch: { tokens: 1, largest: 0, mean: 0 } },
    ...{ tokens: { all: 8 * rows, trained: 3 * rows, share: 3 / 8 }, groups: { all: rows / 8, flat: 0 } },
  };
  const temp = `${out}.tmp`;
  cpSync(parent.folder, temp, { recursive: true });
  writeFileSync(join(temp, "model.safetensors"), weights);
  writeFileSync(join(temp, "report.json"), JSON.stringify(report));
  renameSync(temp, out);
  if (notes !== undefined)
    appendFileSync(
      join(notes, "trained.jsonl"),
      `${JSON.stringify({ out, batch: batch.digest, target: about.target, from: about.sources, sources })}\n`,
    );
  endAfter("training", 1);
  return report;
}

function endAfter(what, times) {
  if (notes === undefined || !existsSync(join(notes, what))) return;
  if (times < Number(readFileSync(join(notes, what), "utf8"))) return;
  rmSync(join(notes, what));
  process.exit(1);
}

function hash(bytes) {
  return `sha256:${createHash("sha256").update(bytes).digest("hex")}`;
}
