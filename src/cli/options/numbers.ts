/** Parses numbers of flags.
 *  In: the text of a flag. Out: the number; Commander turns the error into wrong usage. */
import { InvalidArgumentError } from "commander";

export function wholeNumber(text: string): number {
  return wholeFrom(0, text);
}

export function positiveWhole(text: string): number {
  return wholeFrom(1, text);
}

function wholeFrom(least: number, text: string): number {
  const value = Number(text);
  if (!/^\d+$/.test(text) || !Number.isSafeInteger(value) || value < least)
    throw new InvalidArgumentError(`It must be a whole number, at least ${least}.`);
  return value;
}

export function portNumber(text: string): number {
  const otherwise = "It must be a whole number from 0 to 65535.";
  if (!/^\d+$/.test(text)) throw new InvalidArgumentError(otherwise);
  return within(text, { least: 0, most: 65_535, otherwise });
}

/** Parses seconds or dollars: not negative, without an exponent. */
export function amount(text: string): number {
  if (!/^\d+(\.\d+)?$/.test(text)) throw new InvalidArgumentError("It must be a number, such as 2.5.");
  return Number(text);
}

export function positiveAmount(text: string): number {
  const value = amount(text);
  if (value === 0) throw new InvalidArgumentError("It must be a number greater than 0.");
  return value;
}

/** Parses a factor or a margin, in any notation. */
export function nonNegative(text: string): number {
  return within(text, { least: 0, most: Number.MAX_VALUE, otherwise: "It must be a number ≥ 0." });
}

export function share(text: string): number {
  return within(text, { least: 0, most: 1, otherwise: "It must be a number from 0 to 1." });
}

/** Parses the error level of a one-sided bound: at 0.5 the bound would be the estimate itself. */
export function errorLevel(text: string): number {
  const value = Number(text);
  if (!(value > 0 && value < 0.5))
    throw new InvalidArgumentError("It must be a number above 0 and below 0.5.");
  return value;
}

export function finite(text: string): number {
  const most = Number.MAX_VALUE;
  return within(text, { least: -most, most, otherwise: "It must be a number." });
}

function within(text: string, range: { least: number; most: number; otherwise: string }): number {
  const value = Number(text);
  if (text.trim() === "" || !(value >= range.least && value <= range.most))
    throw new InvalidArgumentError(range.otherwise);
  return value;
}
