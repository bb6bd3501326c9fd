/** The page of the viewer, which the build makes from viewer/. In: nothing, or data. Out: HTML. */
import { existsSync, readFileSync } from "node:fs";
import { RollbookError } from "../../base/index.ts";
import type { PageData } from "./page-data.ts";

/** Beside this file in the package; sources run with what was built last. */
const PLACES = ["./page.html", "../../../dist/view/viewer/page.html"];
const DATA_MARK = "<!--data-->";

/** Without data the page asks the server it came from. */
export function readPage(): string {
  const found = PLACES.map((place) => new URL(place, import.meta.url)).find((url) => existsSync(url));
  if (found === undefined)
    throw new RollbookError("no-page", {}, "the page of the viewer is not built. Run `npm run build`.");
  return readFileSync(found, "utf8");
}

/** One file that needs nothing else. The data is a block of JSON: a browser does not run it, and no text in it can end it,
 *  because every `<` is written as an escape. */
export function pageWith(data: PageData): string {
  const json = JSON.stringify(data).replaceAll("<", "\\u003c");
  const block = `<script type="application/json" id="data">${json}</script>`;
  // A function, because text may hold what `replace` takes for a pattern.
  return readPage().replace(DATA_MARK, () => block);
}
