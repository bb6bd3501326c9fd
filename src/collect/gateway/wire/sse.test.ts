import fc from "fast-check";
import { expect, it } from "vitest";
import { type SseEvent, SseParser } from "./sse.ts";

function parse(chunks: readonly Uint8Array[]): SseEvent[] {
  const events: SseEvent[] = [];
  const parser = new SseParser((event) => events.push(event));
  for (const chunk of chunks) parser.push(chunk);
  parser.end();
  return events;
}
const bare = (events: readonly SseEvent[]) => events.map(({ type, data }) => ({ type, data }));

it.each([
  ["data: a\n\ndata: b\n\n", ["a", "b"]],
  ["data:a\r\n\r\ndata: b\r\n\r\n", ["a", "b"]],
  ["data: a\r\rdata: b\r\r", ["a", "b"]],
  ["data: one\ndata: two\n\n", ["one\ntwo"]],
  [": comment\n\ndata: a\n\n", ["a"]],
  ["retry: 5\nid: 3\n\ndata: a\n\n", ["a"]],
  ["data: not ended", ["not ended"]],
  ["data\n\n", [""]],
  ["", []],
])("%j holds the data %j", (text, data) => {
  expect(parse([Buffer.from(text)]).map((event) => event.data)).toEqual(data);
});

it("names events by their field, and forgets the name afterwards", () => {
  expect(bare(parse([Buffer.from("event: ping\ndata: 1\n\ndata: 2\n\n")]))).toEqual([
    { type: "ping", data: "1" },
    { type: "message", data: "2" },
  ]);
});

it("gives the same events however the bytes are cut, also inside of characters and line ends", () => {
  const line = fc.stringMatching(/^[a-zé你😀 :]{0,12}$/u);
  const ending = fc.constantFrom("\n", "\r\n", "\r");
  fc.assert(
    fc.property(
      fc.array(line, { maxLength: 6 }),
      ending,
      fc.array(fc.nat(200), { maxLength: 8 }),
      (lines, end, cuts) => {
        const bytes = Buffer.from(lines.map((each) => `event: e${end}data: ${each}${end}${end}`).join(""));
        const places = [
          0,
          ...cuts.map((cut) => cut % (bytes.length + 1)).sort((a, b) => a - b),
          bytes.length,
        ];
        const chunks = places.slice(1).map((place, i) => bytes.subarray(places[i], place));
        expect(bare(parse(chunks))).toEqual(bare(parse([bytes])));
        expect(parse([bytes]).map(({ data }) => data)).toEqual(lines.map((each) => each));
      },
    ),
  );
});

it("says where an event begins in the chunk that completes it", () => {
  const starts: number[] = [];
  const parser = new SseParser(({ start }) => starts.push(start));
  parser.push(Buffer.from("data: a\n\ndata: b\n\nda"));
  parser.push(Buffer.from("ta: c\n\ndata: d\n\n"));
  expect(starts).toEqual([0, 9, 0, 7]);
});

it("a stream is read in time that grows with its length, in one chunk or in many, and floods of lines are not kept", () => {
  const events = Buffer.from('data: {"choices":[{"delta":{"content":"x"}}]}\n\n'.repeat(64_000));
  const before = process.cpuUsage();
  expect(parse([events])).toHaveLength(64_000);
  const [size, count] = [100, events.length / 100];
  const pieces = Array.from({ length: count }, (_, i) => events.subarray(i * size, (i + 1) * size));
  expect(parse(pieces)).toHaveLength(64_000);
  expect(parse([Buffer.alloc(20_000_000, "\n"), Buffer.from("data: a\n\n")])).toHaveLength(1);
  // An event that never ends is not an event.
  expect(parse([Buffer.from("data:\n".repeat(3_000_000))])).toEqual([]);
  expect(process.cpuUsage(before).user / 1000).toBeLessThan(8000);
});
