/** Reads the settings from a schema. In: a schema of a configuration. Out: one row for each key, in the order of the
 *  schema: its path, accepted values, default, and meaning. A key without a description is an error. */
import { z } from "zod";

export interface SettingRow {
  readonly key: string;
  readonly takes: string;
  readonly fallback: string;
  readonly meaning: string;
}

interface Definition {
  readonly type: string;
  readonly innerType?: z.core.$ZodType;
  readonly defaultValue?: unknown;
  readonly shape?: Readonly<Record<string, z.core.$ZodType>>;
  readonly element?: z.core.$ZodType;
  readonly valueType?: z.core.$ZodType;
  readonly options?: readonly z.core.$ZodType[];
  readonly entries?: Readonly<Record<string, string>>;
  readonly values?: readonly unknown[];
}

export function settingRows(schema: z.core.$ZodType, prefix = ""): SettingRow[] {
  const { shape } = unwrapped(schema);
  if (shape === undefined) return [];
  return Object.entries(shape).flatMap(([name, value]) => {
    const key = `${prefix}${name}`;
    const meaning = z.globalRegistry.get(value)?.description;
    if (meaning === undefined) throw new Error(`${key} has no description`);
    return [{ key, takes: takes(value), fallback: fallbackOf(value, name), meaning }, ...inner(value, key)];
  });
}

function inner(schema: z.core.$ZodType, key: string): SettingRow[] {
  const { type, valueType, options = [], element } = unwrapped(schema);
  if (type === "record") return settingRows(valueType!, `${key}.<name>.`);
  if (type === "array") return settingRows(element!, `${key}[].`);
  if (type === "union") return options.flatMap((each) => settingRows(each, `${key}.`));
  return settingRows(schema, `${key}.`);
}

function takes(schema: z.core.$ZodType): string {
  const { type, entries, values, element, options, valueType } = unwrapped(schema);
  switch (type) {
    case "enum":
      return Object.values(entries!).map(code).join(", ");
    case "literal":
      return values!.map((each) => code(String(each))).join(", ");
    case "array":
      return `list of ${takes(element!)}`;
    case "record":
      return `by name: ${takes(valueType!)}`;
    case "union":
      return [...new Set(options!.map(takes))].join(" or ");
    case "string":
      return "text";
    case "object":
      return "section";
    case "lazy":
    case "any":
      return "any value";
    case "tuple":
      return "list";
    default:
      return type;
  }
}

function fallbackOf(schema: z.core.$ZodType, name: string): string {
  const { type, innerType, defaultValue } = definitionOf(schema);
  if (type === "optional" || type === "nullable" || type === "prefault") return "";
  if (type !== "default") return innerType === undefined ? "required" : fallbackOf(innerType, name);
  const text = typeof defaultValue === "string" ? defaultValue : JSON.stringify(defaultValue);
  const size = typeof defaultValue === "number" ? sizeOf(defaultValue, name) : undefined;
  return size === undefined ? code(text) : `${code(text)} (${size})`;
}

const UNITS = {
  Bytes: [
    ["GiB", 1024 ** 3],
    ["MiB", 1024 ** 2],
    ["KiB", 1024],
  ],
  Ms: [
    ["h", 3_600_000],
    ["min", 60_000],
    ["s", 1000],
  ],
} as const;

/** `64 MiB` for `requestBytes`, because eight digits are hard to read. The names of keys end in their unit. */
function sizeOf(value: number, name: string): string | undefined {
  const units = Object.entries(UNITS).find(([ending]) => name.endsWith(ending))?.[1] ?? [];
  const unit = units.find(([, size]) => value >= size && value % size === 0);
  return unit === undefined ? undefined : `${value / unit[1]} ${unit[0]}`;
}

function unwrapped(schema: z.core.$ZodType): Definition {
  const definition = definitionOf(schema);
  return definition.innerType === undefined ? definition : unwrapped(definition.innerType);
}

function definitionOf(schema: z.core.$ZodType): Definition {
  return (schema as unknown as { def: Definition }).def;
}

function code(text: string): string {
  return `\`${text}\``;
}
