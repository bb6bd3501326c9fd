import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, expect, it } from "vitest";
import * as needs from "../../scripts/setup/chromium.mjs";
import { renderReportPage } from "../../src/view/report/render-report.ts";
import type { RunFacts } from "../../src/view/report/run-facts.ts";
import { openBrowser, watchPage } from "../support/browser.ts";
import { Cli } from "../support/cli.ts";
import { DEMO_SUMMARY } from "../support/demo-summary.ts";
import { LOOP, writeLoop } from "../support/loop-world.ts";
import { describeNeeding } from "../support/needs.ts";

const CHARTS = ["reward-chart", "interval-chart", "frontier-chart", "flow-chart", "lineage-chart"];

/** The smallest contrast between any text and its background, by WCAG 2. */
const CONTRAST = `(() => {
  const numbers = (colour) => (colour.match(/[\\d.]+/g) ?? []).map(Number);
  const luminance = (colour) => {
    const [r, g, b] = numbers(colour).map((each) => {
      const share = each / 255;
      return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
    });
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const ground = (element) => {
    for (let each = element; each; each = each.parentElement) {
      const box = each.matches(".box") ? getComputedStyle(each.querySelector("rect")).fill : undefined;
      const colour = box ?? getComputedStyle(each).backgroundColor;
      if (numbers(colour)[3] !== 0) return colour;
    }
    return "rgb(255, 255, 255)";
  };
  let least = { contrast: 99 };
  for (const element of document.querySelectorAll("h1, h2, p, dt, dd, th, td, figcaption, caption, code, span, text, summary")) {
    if (!element.textContent.trim()) continue;
    const style = getComputedStyle(element);
    const [a, b] = [luminance(element.matches("text") ? style.fill : style.color), luminance(ground(element))];
    const contrast = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    if (contrast < least.contrast) least = { contrast, text: element.textContent };
  }
  return least;
})()`;

async function opened(browser: Browser, facts: RunFacts, colorScheme: "light" | "dark") {
  const file = join(new Cli().folder, "report.html");
  writeFileSync(file, renderReportPage(facts));
  return watchPage(browser, pathToFileURL(file).href, { colorScheme });
}

/** Chart texts that lie outside their drawing, or outside the page. */
const overflowing = (page: Page) =>
  page.evaluate(`[...document.querySelectorAll("svg")].flatMap((svg) => {
    const frame = svg.getBoundingClientRect();
    return [...svg.querySelectorAll("text")].filter((text) => {
      const box = text.getBoundingClientRect();
      return box.left < frame.left - 1 || box.right > frame.right + 1 || box.bottom > frame.bottom + 1;
    }).map((text) => text.textContent);
  })`);

await describeNeeding(needs, "the report of a run", () => {
  let browser: Browser;
  beforeAll(async () => {
    browser = await openBrowser();
  });
  afterAll(() => browser.close());

  it.each(["light", "dark"] as const)(
    "shows every chart and its numbers in %s, with readable contrast, and asks for nothing",
    async (colorScheme) => {
      const { page, faults, foreign } = await opened(browser, DEMO_SUMMARY, colorScheme);
      for (const name of CHARTS) {
        const chart = page.locator(`svg.${name}`);
        expect(await chart.count(), name).toBe(1);
        expect((await chart.boundingBox())!.height).toBeGreaterThan(150);
        expect(await chart.getAttribute("aria-label")).toBeTruthy();
        expect((await chart.locator("> desc").textContent())!.length).toBeGreaterThan(40);
      }
      expect(await overflowing(page)).toEqual([]);
      const text = await page.locator("body").textContent();
      for (const fact of [
        "83.7 %",
        "0.831",
        "0.871",
        "failed-sandbox",
        "demo-w3-cql",
        "quality may be up to 0.0546 worse",
      ])
        expect(text).toContain(fact);
      const least = (await page.evaluate(CONTRAST)) as { contrast: number; text: string };
      expect(least.contrast, least.text).toBeGreaterThanOrEqual(4.5);
      expect([faults, foreign]).toEqual([[], []]);
    },
  );

  it("is dark in the dark, and light on paper", async () => {
    const { page } = await opened(browser, DEMO_SUMMARY, "dark");
    const ground = () => page.evaluate("getComputedStyle(document.body).backgroundColor");
    expect(await ground()).toBe("rgb(22, 24, 28)");
    await page.emulateMedia({ media: "print" });
    expect(await ground()).toBe("rgb(255, 255, 255)");
    expect((await page.pdf({ format: "A4" })).length).toBeGreaterThan(10_000);
  });

  it("runs nothing of the texts it shows, and its policy refuses what is injected", async () => {
    const evil = '<img src=x onerror="window.owned=1"><script>window.owned=1</script>';
    const facts = { ...DEMO_SUMMARY, run: evil, models: [evil] };
    const { page, faults, foreign } = await opened(browser, facts, "light");
    expect(await page.locator("h1").textContent()).toBe(`Run ${evil}`);
    expect(await page.locator("script, img, iframe, link").count()).toBe(0);
    expect(await page.evaluate("window.owned")).toBeUndefined();
    expect([faults, foreign]).toEqual([[], []]);
    await page.evaluate(
      "document.body.insertAdjacentHTML('beforeend', '<img src=data:image/gif;base64,R0lGOD>')",
    );
    await expect.poll(() => faults.join(), { timeout: 5000 }).toContain("Content Security Policy");
  });

  it("is made for any run from its book, by `rollbook run report`, and overwrites nothing", async () => {
    const cli = new Cli();
    const config = writeLoop(cli.folder, { ...LOOP, windows: 1, rollouts: 72, samples: 2 });
    const out = join(cli.folder, "report.html");
    const words = ["run", "report", "--config", config, "--book", cli.book, "--out", out];
    expect((await cli.run(words)).err).toContain("[run-not-begun]");
    await cli.ok(`run start --config ${config} --book ${cli.book}`);
    expect(await cli.ok(words)).toMatch(/report\.html: 1 window, /);
    expect(await cli.run(words)).toMatchObject({ code: 1, err: expect.stringContaining("not overwritten") });
    const { page, faults, foreign } = await watchPage(browser, pathToFileURL(out).href);
    for (const name of CHARTS) expect(await page.locator(`svg.${name}`).count(), name).toBe(1);
    const [{ windows }] = await cli.json(`run status --config ${config} --book ${cli.book}`);
    const text = await page.locator("body").textContent();
    for (const exact of [windows[0].behaviourValue, windows[0].servedValue, windows[0].optimum])
      expect(text).toContain(exact.toFixed(3));
    expect(await page.locator("svg.frontier-chart .optimum-mark").count()).toBe(1);
    expect(await overflowing(page)).toEqual([]);
    expect([faults, foreign]).toEqual([[], []]);
  }, 60_000);

  it("says less where a world knows no exact values, and nothing that is undefined", async () => {
    const {
      optimum: _,
      behaviourValue: __,
      servedValue: ___,
      gapClosed: ____,
      stages: _____,
      ...facts
    } = DEMO_SUMMARY;
    const windows = facts.windows.map(
      ({ collectedValue: _c, servedValue: _s, reward: _r, learners, ...rest }) => ({
        ...rest,
        learners: learners.map(({ exactValue: _e, ...each }) => each),
      }),
    );
    const bare: RunFacts = { ...facts, windows, costQuality: [], lineage: { nodes: [], edges: [] } };
    const { page, faults } = await opened(browser, bare, "light");
    const text = await page.locator("body").textContent();
    expect(text).not.toMatch(/undefined|NaN|optimum/);
    expect(await page.locator("svg").count()).toBe(3);
    expect(faults).toEqual([]);
  });
});
