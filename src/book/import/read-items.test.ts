import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { splitLines } from "./lines.ts";
import { type Item, readItems } from "./read-items.ts";

async function* chunksOf(bytes: Uint8Array, size: number): AsyncGenerator<Uint8Array> {
  for (let at = 0; at < bytes.length; at += size) yield bytes.subarray(at, at + size);
}

async function collect<T>(items: AsyncIterable<T>): Promise<T[]> {
  const all: T[] = [];
  for await (const item of items) all.push(item);
  return all;
}

const source = (text: string, size = 7) => ({ name: "f", read: () => chunksOf(Buffer.from(text), size) });
const shown = (item: Item) => ("error" in item ? [item.where, item.error.code] : [item.where, item.value]);

describe("splitLines", () => {
  it("gives the lines of any text, however it is cut into chunks", async () => {
    const line = fc.string({ maxLength: 12 }).map((text) => text.replaceAll("\n", "\u2028\r"));
    await fc.assert(
      fc.asyncProperty(fc.array(line), fc.integer({ min: 1, max: 9 }), async (texts, size) => {
        const bytes = Buffer.from(texts.map((text) => `${text}\n`).join(""));
        const found = await collect(splitLines(chunksOf(bytes, size), 1000));
        expect(found.map(({ bytes }) => Buffer.from(bytes!).toString())).toEqual(
          texts.map((text) => text.toWellFormed()),
        );
        expect(found.map(({ number }) => number)).toEqual(texts.map((_, i) => i + 1));
      }),
    );
  });
});

describe("readItems", () => {
  it("gives up one line that is too long, and no other", async () => {
    const text = `{"a":1}\n{"b":"${"x".repeat(50)}"}\n{"c":3}`;
    expect((await collect(readItems(source(text), 20))).map(shown)).toEqual([
      ["f:1", { a: 1 }],
      ["f:2", "too-long"],
      ["f:3", { c: 3 }],
    ]);
    expect((await collect(readItems(source("[\n1,\n2,\n3,\n4,\n5]"), 10))).map(shown)).toEqual([
      ["f", "too-long"],
    ]);
  });

  it("reads a document, an array and lines, with and without blank lines around them", async () => {
    const read = async (text: string) => (await collect(readItems(source(text)))).map(shown);
    expect(await read('\n\n{"a":\n1}\n')).toEqual([["f", { a: 1 }]]);
    expect(await read('[{"a":1},\n{"b":2}]')).toEqual([
      ["f[0]", { a: 1 }],
      ["f[1]", { b: 2 }],
    ]);
    expect(await read('\n{"a":1}\n\n{"b":2}')).toEqual([
      ["f:2", { a: 1 }],
      ["f:4", { b: 2 }],
    ]);
    expect(await read("\n\n{\n1")).toEqual([["f", "bad-json"]]);
  });

  it("keeps integers past 2^53 exact for those who ask", async () => {
    const [line, inArray] = [
      ...(await collect(readItems(source('{"n":18446744073709551615}')))),
      ...(await collect(readItems(source('[\n{"n":18446744073709551615}]')))),
    ];
    for (const item of [line!, inArray!])
      if (!("error" in item)) expect(item.wide()).toEqual({ n: 18446744073709551615n });
  });
});
