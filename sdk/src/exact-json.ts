/** Numbers with more digits than a double holds, or with an exponent, have one of these somewhere in their text. */
const maybeRounded = /[\d.]{16}|\d[eE]/;

/** The parts of JSON that TypeScript has no types for (TC39 proposal JSON.parse source text access). */
interface ExactJson extends Pick<JSON, "stringify"> {
  readonly rawJSON?: (text: string) => object;
  readonly isRawJSON?: (value: unknown) => boolean;
}

const { rawJSON, isRawJSON }: ExactJson = JSON;

type Reviver = (key: string, value: unknown, context?: { readonly source?: string }) => unknown;

/**
 * Parses JSON without rounding: a number that a double does not hold becomes an object that JSON.stringify writes with
 * its digits, and others are numbers. Throws a RangeError with such a number where the runtime has no JSON.rawJSON, and
 * a SyntaxError for a text that is not JSON.
 */
export function parseExactly(text: string): unknown {
  if (!maybeRounded.test(text)) return JSON.parse(text);
  const reviver: Reviver = (_, value, context) => {
    const source = context?.source;
    if (typeof value !== "number" || source === undefined || isExact(source)) return value;
    if (rawJSON === undefined) throw new RangeError(`${source} has too many digits; write it as a string.`);
    return rawJSON(source);
  };
  return JSON.parse(text, reviver as (key: string, value: unknown) => unknown);
}

/** The digits of a number that `parseExactly` did not round; undefined for any other value. */
export function exactDigits(value: unknown): string | undefined {
  return isRawJSON?.(value) === true ? (value as { readonly rawJSON: string }).rawJSON : undefined;
}

const longest = 1_000;

/** True if a double holds the number of a JSON text: 1.10 and 1e3 are exact, 9007199254740993 is not. */
function isExact(text: string): boolean {
  // No double has so many digits, and the comparison takes time that grows with their number.
  if (text.length > longest) return false;
  const value = Number(text);
  return Number.isFinite(value) && digitsOf(text) === digitsOf(String(value));
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
