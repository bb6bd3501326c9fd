import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { decodeOutputs, endOf } from "./ending.ts";
import { floodBytes, OutputBuffer } from "./output.ts";

describe("OutputBuffer", () => {
  it("keeps exactly the first bytes however they are cut, and flags a loss if and only if there was one", () => {
    fc.assert(
      fc.property(fc.array(fc.uint8Array({ maxLength: 20 })), fc.nat(100), (chunks, limit) => {
        const buffer = new OutputBuffer(limit);
        for (const chunk of chunks) buffer.push(chunk);
        const all = chunks.flatMap((chunk) => [...chunk]);
        expect([...buffer.bytes()]).toEqual(all.slice(0, limit));
        expect(buffer.truncated).toBe(all.length > limit);
      }),
    );
  });

  it("calls out once the flood mark is passed, not before", () => {
    let floods = 0;
    const buffer = new OutputBuffer(10, () => floods++);
    buffer.push(new Uint8Array(floodBytes(10)));
    expect(floods).toBe(0);
    buffer.push(new Uint8Array(1));
    expect(floods).toBe(1);
  });
});

describe("decodeOutputs", () => {
  const sent = (text: string) => {
    const buffer = new OutputBuffer(1000);
    buffer.push(Buffer.from(text));
    return buffer;
  };

  it("returns the files that came whole and fit, and nothing for garbled or missing lines", () => {
    const text = `=${Buffer.from([0, 255, 10]).toString("base64")}\n\n=***\n=\n=${Buffer.alloc(9).toString("base64")}\n=AAAA`;
    const files = decodeOutputs(["a", "absent", "garbled", "empty", "too-big", "cut"], sent(text), 8);
    expect(Object.entries(files).map(([path, bytes]) => [path, [...bytes]])).toEqual([
      ["a", [0, 255, 10]],
      ["empty", []],
    ]);
  });
});

describe("endOf", () => {
  it.each([
    [0, 0, null],
    [127, 127, null],
    [137, null, "SIGKILL"],
    [139, null, "SIGSEGV"],
    [255, 255, null],
  ])("status %i is exit %s or signal %s", (status, exitCode, signal) => {
    expect(endOf(status)).toEqual({ exitCode, signal });
  });
});
