import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, it, onTestFinished } from "vitest";
import { manualClock } from "../base/index.ts";
import { Task } from "../contract/index.ts";
import { openBook, openCatalog } from "../store/index.ts";

it("a program that waits for the keeper alone goes on when the catalog is up to date, and ends", async () => {
  const root = mkdtempSync(join(tmpdir(), "rollbook-keeper-"));
  onTestFinished(() => rmSync(root, { recursive: true, force: true }));
  const book = await openBook(root, { clock: manualClock(1) });
  const digest = book.put(Task.kind, Buffer.from('{"id":"t"}'));
  await book.close();
  const script = `
    import { startCatalogKeeper } from ${JSON.stringify(new URL("./catalog-keeper.ts", import.meta.url).href)};
    const keeper = startCatalogKeeper(${JSON.stringify(root)}, console.log);
    await keeper.caughtUp();
    await keeper.close();
    console.log("closed");`;
  const program = join(root, "wait.mts");
  writeFileSync(program, script);
  const { status, stdout } = spawnSync(process.execPath, ["--import", "tsx", program], { encoding: "utf8" });
  expect({ status, stdout }).toEqual({ status: 0, stdout: "closed\n" });
  const catalog = openCatalog(root);
  expect(catalog.record(digest)?.id).toBe("t");
  catalog.close();
});
