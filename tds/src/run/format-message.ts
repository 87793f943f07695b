import type { Value } from "../types/tsql-type.ts";

const placeholder = /%([-+ 0#]*)(\d*)(?:\.(\d+))?([diosuxX%])/g;
const lengthMax = 2_047;

/** Formats the message of RAISERROR: parameters replace %s, %d and the like. */
export function formatMessage(format: string, values: readonly Value[]): string {
  let index = 0;
  const text = format.replaceAll(
    placeholder,
    (_, flags: string, width: string, precision: string | undefined, kind: string) => {
      if (kind === "%") return "%";
      const value = values[index] ?? null;
      index += 1;
      const printed = value === null ? "(null)" : kind.toLowerCase() === "x" ? Number(value).toString(16) : value;
      const cut = precision !== undefined && kind === "s" ? printed.slice(0, Number(precision)) : printed;
      const size = Math.min(Number(width || 0), lengthMax);
      if (flags.includes("-")) return cut.padEnd(size);
      return cut.padStart(size, flags.includes("0") && kind !== "s" ? "0" : " ");
    },
  );
  return text.slice(0, lengthMax);
}
