import fc from "fast-check";
import { expect, it } from "vitest";
import { demultiplexer } from "./client.ts";

it("frames cut at any byte come out as the streams that were sent", () => {
  const frame = fc.record({ stream: fc.constantFrom(1, 2), bytes: fc.uint8Array({ maxLength: 40 }) });
  fc.assert(
    fc.property(
      fc.array(frame, { maxLength: 10 }),
      fc.array(fc.integer({ min: 1, max: 30 })),
      (frames, cuts) => {
        const wire = Buffer.concat(
          frames.map(({ stream, bytes }) => {
            const header = Buffer.from([stream, 0, 0, 0, 0, 0, 0, 0]);
            header.writeUInt32BE(bytes.length, 4);
            return Buffer.concat([header, bytes]);
          }),
        );
        const seen = { stdout: [] as number[], stderr: [] as number[] };
        const push = demultiplexer((stream, chunk) => seen[stream].push(...chunk));
        let at = 0;
        for (const cut of cuts) {
          push(wire.subarray(at, at + cut));
          at += cut;
        }
        push(wire.subarray(at));
        for (const [name, id] of [
          ["stdout", 1],
          ["stderr", 2],
        ] as const)
          expect(seen[name]).toEqual(
            frames.filter(({ stream }) => stream === id).flatMap(({ bytes }) => [...bytes]),
          );
      },
    ),
  );
});
