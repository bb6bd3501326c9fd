/** The page of `rollbook view`. Text of records enters the document as text only: no component renders HTML. */
import { mount } from "svelte";
import { CHART_STYLE } from "../../src/view/charts/index.ts";
import App from "./App.svelte";
import "./style.css";
import { openSource } from "./source.ts";

const charts = new CSSStyleSheet();
charts.replaceSync(CHART_STYLE);
document.adoptedStyleSheets = [charts];

mount(App, { target: document.getElementById("app")!, props: { source: openSource() } });
