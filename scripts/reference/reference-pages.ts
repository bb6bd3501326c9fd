/** The reference of every configuration file, from its schema. Out: the text of docs/reference/settings.md. */
import { gatewaySchema } from "../../src/collect/gateway/config.ts";
import { configSchema } from "../../src/loop/config.ts";
import { slimeSchema } from "../../src/loop/slime/settings.ts";
import { routerSchema } from "../../src/serve/config.ts";
import { markdownTable } from "./markdown-table.ts";
import { type SettingRow, settingRows } from "./setting-rows.ts";

const PARTS = [
  {
    title: "The gateway",
    text: "The file of `rollbook gateway --config`. [gateway.md](../gateway.md) says how to use it.",
    schema: gatewaySchema,
  },
  {
    title: "The router",
    text: "The section `router` of the gateway's file. [serve.md](../serve.md) says how to use it.",
    schema: routerSchema,
  },
  {
    title: "The loop",
    text: "The file of `rollbook run start --config`. [loop.md](../loop.md) and [climb.md](../topics/climb.md) say how to use it. The keys below a `kind` are those of that kind.",
    schema: configSchema,
  },
  {
    title: "slime",
    text: "The file of `rollbook slime train --config`. [slime.md](../topics/slime.md) says how to use it.",
    schema: slimeSchema,
  },
];

export function settingsPage(): string {
  return [
    "# Settings",
    "",
    "Every key of the configuration files, as their schemas declare them. Files are YAML. An unknown key is an error, and the",
    "message names the nearest key. `npm run reference` writes this page; do not edit it.",
    ...PARTS.flatMap(({ title, text, schema }) => [
      "",
      `## ${title}`,
      "",
      text,
      "",
      ...table(settingRows(schema)),
    ]),
    "",
  ].join("\n");
}

function table(rows: readonly SettingRow[]): string[] {
  return markdownTable([
    ["key", "takes", "default", "meaning"],
    ...rows.map(({ key, takes, fallback, meaning }) => [
      `\`${key}\``,
      takes,
      fallback,
      meaning.replaceAll("|", "\\|"),
    ]),
  ]);
}
