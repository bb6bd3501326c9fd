/** Loads the page of the viewer, which the build makes from viewer/.
 *  In: nothing, or data. Out: HTML. */
import { existsSync, readFileSync } from "node:fs";
import { RollbookError } from "../../base/index.ts";
import type { PageData } from "./page-data.ts";

/** The page lies beside this file in the package. The sources use the page of the last build. */
const PLACES = ["./page.html", "../../../dist/view/viewer/page.html"];
const DATA_MARK = "<!--data-->";

/** Without data, the page asks the server that it was loaded from. */
export function readPage(): string {
  const found = PLACES.map((place) => new URL(place, import.meta.url)).find((url) => existsSync(url));
  if (found === undefined)
    throw new RollbookError("no-page", {}, "the page of the viewer is not built. Run `npm run build`.");
  return readFileSync(found, "utf8");
}

/** Makes one file that needs nothing else. The data is a block of JSON, which a browser does not run. No text in it can
 *  end the block, because every `<` is escaped. */
export function pageWith(data: PageData): string {
  const json = JSON.stringify(data).replaceAll("<", "\\u003c");
  const block = `<script type="application/json" id="data">${json}</script>`;
  // A function is needed, because the text may contain replacement patterns of `replace`.
  return readPage().replace(DATA_MARK, () => block);
}
