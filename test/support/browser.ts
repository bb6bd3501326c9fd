/** Debian's chromium under playwright-core. In: a page's address. Out: the page, with its errors and its foreign
 *  requests. */
import { spawnSync } from "node:child_process";
import { type Browser, chromium, type Page } from "playwright-core";

export interface WatchedPage {
  readonly page: Page;
  /** Errors of scripts, and violations of the page's content security policy. */
  readonly faults: string[];
  /** Addresses outside the page's own origin that it tried to reach. */
  readonly foreign: string[];
}

export function openBrowser(): Promise<Browser> {
  const { stdout } = spawnSync("sh", ["-c", "command -v chromium"], { encoding: "utf8" });
  // The browser's sandbox does not work for root. The pages are ours, on loopback.
  return chromium.launch({ executablePath: stdout.trim(), args: ["--no-sandbox", "--disable-gpu"] });
}

export async function watchPage(
  browser: Browser,
  url: string,
  options: { colorScheme?: "light" | "dark" } = {},
): Promise<WatchedPage> {
  const context = await browser.newContext({ viewport: { width: 1300, height: 800 }, ...options });
  const page = await context.newPage();
  const [faults, foreign]: [string[], string[]] = [[], []];
  page.on("pageerror", (error) => faults.push(error.message));
  page.on("console", (message) => {
    if (message.type() === "error") faults.push(message.text());
  });
  page.on("dialog", (dialog) => {
    faults.push(`dialog ${dialog.message()}`);
    dialog.dismiss().catch(() => {});
  });
  const own = new URL(url);
  page.on("request", (request) => {
    const asked = new URL(request.url());
    const isOwn =
      own.protocol === "file:"
        ? asked.href.split("#")[0] === own.href.split("#")[0]
        : asked.origin === own.origin;
    if (!isOwn && asked.protocol !== "blob:" && asked.protocol !== "data:") foreign.push(request.url());
  });
  await page.goto(url);
  return { page, faults, foreign };
}
