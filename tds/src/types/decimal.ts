/** Parses a decimal number to a multiple of 10^-scale, rounded; undefined if the text is not a decimal number. */
export function toUnits(text: string, scale: number): bigint | undefined {
  const match = /^([+-]?)(\d*)(?:\.(\d*))?$/.exec(text.trim());
  const [, sign, integerPart = "", fraction = ""] = match ?? [];
  if (match === null || integerPart + fraction === "") return undefined;
  const digits = BigInt(integerPart + fraction.slice(0, scale).padEnd(scale, "0") || "0");
  const rounded = (fraction.charAt(scale) || "0") >= "5" ? digits + 1n : digits;
  return sign === "-" ? -rounded : rounded;
}

export function fromUnits(units: bigint, scale: number): string {
  const negative = units < 0n;
  const digits = String(negative ? -units : units).padStart(scale + 1, "0");
  const text = scale === 0 ? digits : `${digits.slice(0, -scale)}.${digits.slice(-scale)}`;
  return negative ? `-${text}` : text;
}
