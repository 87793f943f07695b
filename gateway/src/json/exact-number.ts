import type { JsonNumber } from "./json-node.ts";

const longest = 1_000;

/** True if a double holds the number: 1.10 and 1e3 are exact, 9007199254740993 is not. */
export function isExact({ text, value }: JsonNumber): boolean {
  // A shortcut for most numbers: up to 15 digits without an exponent are exact.
  if (text.length <= 15 && !/[eE]/.test(text)) return true;
  // No double has so many digits, and the comparison takes time that grows with their number.
  if (text.length > longest || !Number.isFinite(value)) return false;
  return digitsOf(text) === digitsOf(String(value));
}

const textMax = 40;

/** The fault of a number that is not exact. */
export function roundedDetail({ text }: JsonNumber): string {
  const excerpt = text.length > textMax ? `${text.slice(0, textMax)}…` : text;
  return `${excerpt} has more digits, or a larger exponent, than a double-precision number: send it as a string`;
}

/** Sign, digits without zeros at either end, and exponent: a text that equal numbers share. */
function digitsOf(text: string): string {
  const [, sign = "", integer = "", fraction = "", exponent = "0"] =
    /^(-?)(\d+)(?:\.(\d+))?(?:[eE]([+-]?\d+))?$/.exec(text) ?? [];
  const digits = `${integer}${fraction}`.replace(/^0+/, "");
  const significant = digits.replace(/0+$/, "");
  if (significant === "") return "0";
  return `${sign}${significant}e${Number(exponent) - fraction.length + digits.length - significant.length}`;
}
