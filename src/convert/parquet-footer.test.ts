import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import fc from "fast-check";
import { ByteWriter, parquetWrite } from "hyparquet-writer";
import { expect, it, onTestFinished } from "vitest";
import { checkFooter } from "./parquet-footer.ts";
import { parquetColumns } from "./parquet-records.ts";

function fileOf(bytes: Uint8Array): string {
  const folder = mkdtempSync(join(tmpdir(), "rollbook-footer-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  writeFileSync(join(folder, "log.parquet"), bytes);
  return join(folder, "log.parquet");
}

function around(footer: Uint8Array): Buffer {
  const length = Buffer.alloc(4);
  length.writeUInt32LE(footer.length);
  return Buffer.concat([Buffer.from("PAR1"), footer, length, Buffer.from("PAR1")]);
}

function whole(): Buffer {
  const writer = new ByteWriter();
  // The write completes at once: only a writer to a file would make it wait.
  void parquetWrite({
    writer,
    columnData: [
      { name: "model", data: ["a", "b"], type: "STRING" },
      { name: "reward", data: [0.5, 1], type: "DOUBLE" },
    ],
  });
  return Buffer.from(writer.getBuffer());
}

it.each([0x0c, 0x01, 0x05, 0x08, 0x09])(
  "a list of 2^31 entries of type %i in a file of 21 bytes is refused at once",
  async (type) => {
    const footer = Buffer.from([0x15, 0x02, 0x19, 0xf0 | type, 0xff, 0xff, 0xff, 0xff, 0x07]);
    const file = fileOf(around(footer));
    const startMs = performance.now();
    await expect(parquetColumns(file)).rejects.toMatchObject({
      code: "bad-row",
      message: expect.stringContaining("a list in its footer has 2147483647 entries"),
    });
    expect(performance.now() - startMs).toBeLessThan(5000);
  },
);

it("a whole file passes, and any bytes as a footer end soon", async () => {
  expect(await parquetColumns(fileOf(whole()))).toEqual(["model", "reward"]);
  const hostile = fc.array(fc.constantFrom(0x19, 0x1c, 0xfc, 0xf9, 0xff, 0x7f, 0x07, 0x00, 0x15, 0x18, 0x9c));
  const startMs = performance.now();
  fc.assert(
    fc.property(fc.oneof(hostile, fc.array(fc.integer({ min: 0, max: 255 }))), (bytes) => {
      try {
        checkFooter(Uint8Array.from(bytes));
      } catch (error) {
        expect(String(error)).toContain("footer");
      }
    }),
    { numRuns: 5000 },
  );
  expect(performance.now() - startMs).toBeLessThan(20_000);
});
