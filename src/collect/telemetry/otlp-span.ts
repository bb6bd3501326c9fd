/** Spans in the JSON form of OTLP 1.x: ids in hexadecimal, times and whole numbers as decimal strings. Pure. */

type OtlpValue =
  | { readonly stringValue: string }
  | { readonly intValue: string }
  | { readonly doubleValue: number }
  | { readonly arrayValue: { readonly values: readonly OtlpValue[] } };

export interface OtlpAttribute {
  readonly key: string;
  readonly value: OtlpValue;
}

/** The span kinds and status codes of OTLP that this package uses. */
export const SPAN_KIND = { internal: 1, client: 3 } as const;
export const STATUS_ERROR = 2;

export interface OtlpSpan {
  readonly traceId: string;
  readonly spanId: string;
  readonly parentSpanId?: string;
  readonly name: string;
  readonly kind: number;
  readonly startTimeUnixNano: string;
  readonly endTimeUnixNano: string;
  readonly attributes: readonly OtlpAttribute[];
  readonly links?: readonly { readonly traceId: string; readonly spanId: string }[];
  readonly status?: { readonly code: number };
}

export function text(value: string): OtlpValue {
  // A lone surrogate is not valid UTF-8. A receiver may refuse the whole batch for it.
  return { stringValue: value.toWellFormed() };
}

export function texts(values: readonly string[]): OtlpValue {
  return { arrayValue: { values: values.map(text) } };
}

export function whole(value: number): OtlpValue {
  return { intValue: String(value) };
}

export function real(value: number): OtlpValue {
  return { doubleValue: value };
}

/** Omits undefined attributes. */
export function attributesOf(values: Readonly<Record<string, OtlpValue | undefined>>): OtlpAttribute[] {
  return Object.entries(values).flatMap(([key, value]) => (value === undefined ? [] : [{ key, value }]));
}

/** Nanoseconds since 1970 do not fit a double exactly; microseconds do. */
export function unixNano(ms: number): string {
  return String(BigInt(Math.round(ms * 1000)) * 1000n);
}

export function tracesRequest(resource: readonly OtlpAttribute[], spans: readonly OtlpSpan[]): string {
  const scopeSpans = [{ scope: { name: "rollbook" }, spans }];
  return JSON.stringify({ resourceSpans: [{ resource: { attributes: resource }, scopeSpans }] });
}
