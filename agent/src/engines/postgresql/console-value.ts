/** Types whose texts are JSON numbers: int2, int4, oid. */
const integers: ReadonlySet<number> = new Set([21, 23, 26]);
/** float4, float8. */
const floats: ReadonlySet<number> = new Set([700, 701]);
const boolean = 16;
const timestamp = 1114;
const timestamptz = 1184;

/**
 * A value as it is answered: numbers that JSON can hold exactly and truth values as such, all else as text. Times are as RFC
 * 3339 has them, those with a time zone in UTC; the engine's own words remain for infinity and for years before Christ.
 */
export function consoleValue(type: number, text: string | null): string | number | boolean | null {
  if (text === null) return null;
  if (integers.has(type)) return Number(text);
  if (floats.has(type)) return Number.isFinite(Number(text)) ? Number(text) : text;
  if (type === boolean) return text === "t";
  if (type === timestamp || type === timestamptz) {
    const found = /^(\d{4,6}-\d{2}-\d{2}) (\d{2}:\d{2}:\d{2}(?:\.\d+)?)(\+00)?$/.exec(text);
    if (found !== null) return `${found[1]}T${found[2]}${type === timestamptz ? "Z" : ""}`;
  }
  return text;
}
