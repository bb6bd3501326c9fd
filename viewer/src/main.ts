/** The page of `rollbook view`. Text of records enters the document as text only: no component renders HTML. */
import { mount } from "svelte";
import App from "./App.svelte";
import "./style.css";
import { openSource } from "./source.ts";

mount(App, { target: document.getElementById("app")!, props: { source: openSource() } });
