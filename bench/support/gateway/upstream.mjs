/** A model server with minimal cost: answers each POST with one prepared reply, over a bare socket.
 *  Requests with `"stream":true` get prepared events instead: the first at once, the others at a fixed interval.
 *  node upstream.mjs REPLY_FILE [EVENT_GAP_MS]: prints its port. */
import { readFileSync } from "node:fs";
import { createServer } from "node:net";

const [replyFile, gapText = "5"] = process.argv.slice(2);
const body = readFileSync(replyFile);
const gapMs = Number(gapText);
const reply = Buffer.concat([
  Buffer.from(`HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: ${body.length}\r\n\r\n`),
  body,
]);
const HEAD = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n";
const delta = (text) => ({
  id: "c",
  object: "chat.completion.chunk",
  created: 1,
  model: "m",
  choices: [{ index: 0, delta: { content: text }, finish_reason: null }],
});
const events = [...Array.from({ length: 8 }, (_, i) => JSON.stringify(delta(`word ${i} `))), "[DONE]"].map(
  (data) => chunk(`data: ${data}\n\n`),
);

createServer({ noDelay: true }, (socket) => {
  let pending = Buffer.alloc(0);
  socket.on("data", (data) => {
    pending = pending.length === 0 ? data : Buffer.concat([pending, data]);
    for (;;) {
      const end = pending.indexOf("\r\n\r\n");
      if (end < 0) return;
      const head = pending.subarray(0, end).toString("latin1");
      const total = end + 4 + Number(/content-length: *(\d+)/i.exec(head)?.[1] ?? 0);
      if (pending.length < total) return;
      const request = pending.subarray(end + 4, total);
      pending = pending.subarray(total);
      if (request.includes('"stream":true')) void stream(socket);
      else socket.write(reply);
    }
  });
  socket.on("error", () => {});
}).listen(0, "127.0.0.1", function () {
  console.log(this.address().port);
});

function chunk(text) {
  return `${Buffer.byteLength(text).toString(16)}\r\n${text}\r\n`;
}

function stream(socket) {
  let sent = 0;
  socket.write(HEAD + events[sent++]);
  const timer = setInterval(() => {
    socket.write(events[sent++]);
    if (sent < events.length) return;
    clearInterval(timer);
    socket.write("0\r\n\r\n");
  }, gapMs);
}
