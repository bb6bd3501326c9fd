import { readFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from "vitest";
import { fillChatBook } from "../../bench/support/chat-book.ts";
import * as needs from "../../scripts/setup/chromium.mjs";
import { type Digest, systemClock } from "../../src/base/index.ts";
import { openBook } from "../../src/book/open/index.ts";
import { decodeWire } from "../../src/contract/codec/record.ts";
import { encodeWire, GateVerdict, PolicyRevision, seal } from "../../src/contract/index.ts";
import { openBook as openStore } from "../../src/store/index.ts";
import { serveViewer } from "../../src/view/viewer/serve-viewer.ts";
import { openBrowser, watchPage } from "../support/browser.ts";
import { chatWire, hostileWire, SCRIPTS } from "../support/chat-rollouts.ts";
import { Cli, lines } from "../support/cli.ts";
import { exampleWire } from "../support/examples.ts";
import { describeNeeding } from "../support/needs.ts";
import { draftWire, makeRevision, stepWire } from "../support/shelf.ts";

const TOKEN = "a-token-of-the-test";

async function served(root: string, contents?: readonly Digest[]) {
  const book = await openBook(root, { mode: "read" });
  const viewer = await serveViewer(book, { token: TOKEN, contents });
  onTestFinished(async () => {
    await viewer.close();
    await book.close();
  });
  return viewer.url;
}

async function importing(...rollouts: readonly unknown[]): Promise<Cli> {
  const cli = new Cli();
  await cli.ok("init");
  await cli.ok("artifact import - --no-sign", lines(...rollouts));
  return cli;
}

const rowsIn = (page: Page) => page.locator("[role=listbox] [role=option]");

describe("the server of the viewer", () => {
  it("shows only the rollouts that are named, in a file and in a browser", async () => {
    const cli = await importing(...["r-1", "r-2", "r-3"].map((name) => draftWire(name)));
    const out = join(cli.folder, "one.html");
    expect(await cli.json(`view r-2 --out ${out}`)).toMatchObject([{ rollouts: 1 }]);
    const [{ content }] = await cli.json("artifact ls --limit 1");
    const address = `${new URL(await served(cli.book, [content])).origin}/api/rollouts`;
    const answer = await fetch(address, { headers: { authorization: `Bearer ${TOKEN}` } });
    expect(await answer.json()).toMatchObject({ rows: [{ content }] });
    expect((await cli.run(["view", "r-9", "--out", `${out}.x`])).err).toContain("r-9");
  });

  it("answers only with its token, under its own name, and only reads", async () => {
    const cli = await importing(chatWire("chat"));
    const base = (await served(cli.book)).split("/#")[0]!;
    const status = async (path: string, init: RequestInit = {}) => (await fetch(base + path, init)).status;
    const headers = { authorization: `Bearer ${TOKEN}` };
    expect(await status("/api/rollouts")).toBe(401);
    expect(await status("/api/rollouts", { headers: { authorization: "Bearer wrong" } })).toBe(401);
    expect(await status("/api/rollouts", { headers })).toBe(200);
    expect(await status("/api/rollouts", { headers, method: "POST" })).toBe(405);
    expect(await status("/api/rollouts/none", { headers })).toBe(404);
    expect(await status("/etc/passwd", { headers })).toBe(404);
    // After DNS rebinding a browser still sends the foreign name as its host.
    const { request } = await import("node:http");
    const foreign = await new Promise((done) => {
      request(`${base}/api/rollouts`, { headers: { ...headers, host: "evil.example" } }, (answer) => {
        answer.resume();
        done(answer.statusCode);
      }).end();
    });
    expect(foreign).toBe(403);
    const blob = await fetch(`${base}/api/blobs/chat`, { headers });
    expect(blob.headers.get("content-disposition")).toBe("attachment");
    expect(JSON.parse(await blob.text())).toMatchObject({ rolloutId: "chat" });
  });

  it("says which port is taken, and what to do", async () => {
    const cli = await importing(chatWire("chat"));
    const { port } = new URL(await served(cli.book));
    const { code, err } = await cli.run(`view --port ${port}`);
    expect([code, err]).toEqual([1, expect.stringContaining("Give another with --port")]);
  });
});

await describeNeeding(needs, "the page of the viewer", () => {
  let browser: Browser;
  beforeAll(async () => {
    browser = await openBrowser();
  });
  afterAll(() => browser.close());

  it("lists rollouts, filters them, opens a transcript and goes back, by keyboard alone", async () => {
    const cli = await importing(chatWire("chat"), chatWire("other", { task: { id: "task-rome" } }));
    const { page, faults, foreign } = await watchPage(browser, await served(cli.book));
    await rowsIn(page).nth(1).waitFor();
    expect(page.url()).not.toContain(TOKEN);
    await page.keyboard.press("/");
    await page.keyboard.type("task-rome");
    await page.getByText("1 of 2 rollouts").waitFor();
    await page.keyboard.press("Escape");
    await page.keyboard.press("Enter");
    await page.getByRole("heading", { name: "other" }).waitFor();
    expect(await page.locator(".turn[data-role=tool] pre").textContent()).toBe("in Lyon");
    expect(await page.locator(".facts").first().textContent()).toContain("reward 1");
    await page.keyboard.press("Escape");
    await page.getByRole("listbox").waitFor();
    expect([faults, foreign]).toEqual([[], []]);
  });

  it("opens a rollout by its id, and aligns its headings with their columns", async () => {
    const cli = await importing(...Array.from({ length: 60 }, (_, i) => chatWire(`chat-${i}`)));
    const out = join(cli.folder, "ids.html");
    await cli.ok(["view", "--out", out]);
    for (const address of [await served(cli.book), pathToFileURL(out).href]) {
      const { page } = await watchPage(browser, address);
      await rowsIn(page).nth(1).waitFor();
      const lefts = (where: string) =>
        page
          .locator(where)
          .evaluate((row) => [...row.children].map((each) => each.getBoundingClientRect().left));
      expect(await lefts(".columns")).toEqual(await lefts("#row-0"));
      expect(await page.locator("nav").textContent()).not.toMatch(/\d/);
      await page.evaluate("location.hash = '#/rollouts/chat-7'");
      await page.getByRole("heading", { name: "chat-7" }).waitFor();
    }
  });

  it("opens the rollout of a file that holds one, and goes back to the list", async () => {
    const cli = await importing(chatWire("chat"), chatWire("other"));
    const out = join(cli.folder, "one.html");
    await cli.ok(["view", "other", "--out", out]);
    const { page } = await watchPage(browser, pathToFileURL(out).href);
    await page.getByRole("heading", { name: "other" }).waitFor();
    await page.keyboard.press("Escape");
    await rowsIn(page).first().waitFor();
  });

  it("runs nothing of a hostile transcript, and does not hang on a message of 10 MB", async () => {
    const cli = await importing(hostileWire("evil", { megabytes: 10 }));
    const { page, faults, foreign } = await watchPage(browser, await served(cli.book));
    await rowsIn(page).first().click();
    await page.getByRole("heading", { name: "evil" }).waitFor();
    await page.locator(".more").first().waitFor();
    expect(await page.evaluate("window.owned")).toBeUndefined();
    // Every script appears as text. The only script element is the page's own.
    const text = await page.locator(".transcript").textContent();
    for (const script of SCRIPTS) expect(text).toContain(script);
    expect(await page.locator("script").count()).toBe(1);
    expect(await page.locator("iframe, object, embed, .transcript img").count()).toBe(0);
    const started = Date.now();
    await page.evaluate("document.querySelector('.transcript').scrollTo(0, 1e9)");
    await page.keyboard.press("Escape");
    await page.getByRole("listbox").waitFor();
    expect(Date.now() - started).toBeLessThan(5000);
    expect([faults, foreign]).toEqual([[], []]);
  });

  it("refuses what its policy does not allow", async () => {
    const cli = await importing(chatWire("chat"));
    const { page } = await watchPage(browser, await served(cli.book));
    await rowsIn(page).first().waitFor();
    const ran = await page.evaluate(`(async () => {
      const script = document.createElement("script");
      script.textContent = "window.injected = true";
      document.body.append(script);
      const image = new Image();
      const loaded = new Promise((done) => {
        image.onload = () => done("loaded");
        image.onerror = () => done("refused");
      });
      image.src = "data:image/gif;base64,R0lGODlhAQABAAAAACH5BAEKAAEALAAAAAABAAEAAAICTAEAOw==";
      return [window.injected, await loaded];
    })()`);
    expect(ran).toEqual([undefined, "refused"]);
  });

  it("stands alone as one file, with the same pages, light and dark", async () => {
    const cli = await importing(chatWire("chat"), hostileWire("evil", { megabytes: 1 }));
    const out = join(cli.folder, "book.html");
    expect(await cli.ok(["view", "--out", out])).toMatch(/^2 rollouts, /);
    expect((await cli.run(["view", "--out", out])).err).toContain("not overwritten");
    expect(readFileSync(out, "utf8").length).toBeLessThan(2_000_000);
    const grounds: unknown[] = [];
    for (const colorScheme of ["light", "dark"] as const) {
      const { page, faults, foreign } = await watchPage(browser, pathToFileURL(out).href, { colorScheme });
      await rowsIn(page).nth(1).waitFor();
      grounds.push(await page.evaluate("getComputedStyle(document.getElementById('app')).backgroundColor"));
      await page.getByText("evil").click();
      await page.getByText("characters more").first().waitFor();
      expect(await page.evaluate("window.owned")).toBeUndefined();
      expect([faults, foreign]).toEqual([[], []]);
    }
    expect(new Set(grounds).size).toBe(2);
  });

  it("shows batches with lineage and ledger, and verdicts with bounds", async () => {
    const revisions = ["policy-r1", "policy-r2"].map((id) =>
      encodeWire(PolicyRevision, makeRevision(id).record),
    );
    const cli = await importing(
      ...[...revisions, draftWire("r-1"), draftWire("r-2"), draftWire("other", { streams: [stepWire()] })],
    );
    const store = await openStore(cli.book, { clock: systemClock });
    const verdict = seal(GateVerdict, decodeWire(GateVerdict, exampleWire(GateVerdict.kind), "verdict"));
    store.put(verdict.kind, verdict.bytes);
    await store.close();
    await cli.ok("batch assemble --target policy-r2 --level token");
    const { page, faults } = await watchPage(browser, await served(cli.book));
    await rowsIn(page).first().waitFor();
    await page.keyboard.press("2");
    await page.getByText("3 streams considered = 2 batched + 1 excluded").waitFor();
    expect(await page.locator("table tbody tr").allTextContents()).toEqual([
      expect.stringContaining("policy-r1"),
    ]);
    expect(await page.locator("article svg text").allTextContents()).toContain("other-level");
    await page.keyboard.press("3");
    await page.locator("article svg circle").first().waitFor();
    expect(await page.locator("article").first().textContent()).toMatch(/(pass|refuse) verdict .* baseline /);
    expect(faults).toEqual([]);
  });

  it("scrolls through thousands of rollouts and keeps few of them in the document", async () => {
    const cli = new Cli();
    const store = await openStore(cli.book, { clock: systemClock });
    await fillChatBook(store, 3000);
    await store.close();
    const { page, faults } = await watchPage(browser, await served(cli.book));
    await page.getByText("3 000 of 3 000 rollouts").waitFor();
    await page.keyboard.press("End");
    await page.getByText("r-000000").waitFor();
    await page.keyboard.press("Home");
    await page.getByText("r-002999").waitFor();
    expect(await rowsIn(page).count()).toBeLessThan(100);
    expect(faults).toEqual([]);
  });
});
