/** Maps numbers to positions: axes with round ticks. Pure, no imports. */

export interface Scale {
  readonly low: number;
  readonly high: number;
  readonly ticks: readonly number[];
  /** Position of a value. */
  at(value: number): number;
  /** Text of a tick; all ticks have the same number of digits. */
  label(tick: number): string;
}

/** Scale with about `count` round ticks around the values; the ends are ticks. */
export function linearScale(
  values: readonly number[],
  { from, to, count = 5 }: { from: number; to: number; count?: number },
): Scale {
  const known = values.filter(Number.isFinite);
  const [least, most] = known.length === 0 ? [0, 1] : [Math.min(...known), Math.max(...known)];
  // Values that differ only by rounding count as one value.
  const span =
    most - least > 1e-9 * Math.max(1e-3, Math.abs(least), Math.abs(most)) ? most - least : undefined;
  const step = roundStep((span ?? (Math.abs(most) > 1e-12 ? Math.abs(most) : 1)) / count);
  const first = Math.floor(least / step + 1e-9);
  const last = Math.max(first + 1, Math.ceil(most / step - 1e-9));
  const ticks = Array.from({ length: last - first + 1 }, (_, i) => (first + i) * step);
  const [low, high] = [ticks[0]!, ticks.at(-1)!];
  const digits = Math.max(0, -Math.floor(Math.log10(step) + 1e-9));
  return {
    ...{ low, high, ticks },
    at: (value) => from + ((value - low) / (high - low)) * (to - from),
    label: (tick) => numberText(tick, digits),
  };
}

/** Smallest of 1, 2 or 5 times a power of ten that is not below the wanted step. */
function roundStep(wanted: number): number {
  const power = 10 ** Math.floor(Math.log10(wanted));
  return power * ([1, 2, 5].find((each) => each * power >= wanted * (1 - 1e-9)) ?? 10);
}

/** Uses a true minus sign. */
export function numberText(value: number, digits: number): string {
  const text = Math.abs(value).toFixed(digits);
  return value < 0 && Number(text) !== 0 ? `−${text}` : text;
}

/** Estimated width: no font is measured here. */
export function textWidth(text: string, size = 12): number {
  return text.length * size * 0.56;
}
