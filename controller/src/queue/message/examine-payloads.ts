import type { FieldFault } from "@holdfast/common/errors.ts";

/** Maximum size of a payload in bytes, both in the request and with numbers in the format of PostgreSQL's jsonb. */
export const payloadBytesMax = 262_144;
const depthMax = 64;
/** Maximum exponent: jsonb writes all digits of a number, so a larger one would multiply the size. */
const exponentMax = 1_000;

/** Faults in the payloads of a request, in their order. */
export interface PayloadVerdict {
  /** All faults except excessive size; oversized payloads are not examined for other faults. */
  readonly faults: readonly FieldFault[];
  /** Indexes of oversized payloads. */
  readonly large: readonly number[];
}

export function examinePayloads(payloads: readonly Uint8Array[]): PayloadVerdict {
  const faults: FieldFault[] = [];
  const large: number[] = [];
  for (const [index, payload] of payloads.entries()) {
    if (payload.length === 0) continue;
    const text = payload.length > payloadBytesMax ? undefined : Buffer.from(payload).toString("utf8");
    const found = text === undefined ? undefined : faultOf(text);
    if (found !== undefined) faults.push({ ...fieldOf(index), ...found });
    if (text === undefined || payload.length + expandedBytes(text) > payloadBytesMax) large.push(index);
  }
  return { faults, large };
}

export function fieldOf(index: number): Pick<FieldFault, "field" | "pointer"> {
  return { field: `messages[${index}].payload`, pointer: `/messages/${index}/payload` };
}

function faultOf(text: string): Pick<FieldFault, "code" | "detail"> | undefined {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return { code: "invalid_json", detail: "must be JSON" };
  }
  if (typeof value !== "object" || value === null || Array.isArray(value))
    return { code: "wrong_type", detail: "must be an object" };
  if (exponentsOf(text).some((exponent) => Math.abs(exponent) > exponentMax))
    return { code: "out_of_range", detail: `must not have numbers with an exponent above ${exponentMax}` };
  return faultWithin(value, 1);
}

/** PostgreSQL's text accepts neither U+0000 nor unpaired surrogates. */
function faultWithin(value: unknown, depth: number): Pick<FieldFault, "code" | "detail"> | undefined {
  if (typeof value === "string") return faultOfText(value);
  if (typeof value !== "object" || value === null) return undefined;
  if (depth > depthMax) return { code: "too_deep", detail: `must not be nested deeper than ${depthMax}` };
  for (const [key, member] of Object.entries(value)) {
    const found = faultOfText(key) ?? faultWithin(member, depth + 1);
    if (found !== undefined) return found;
  }
  return undefined;
}

function faultOfText(text: string): Pick<FieldFault, "code" | "detail"> | undefined {
  if (text.includes("\u0000")) return { code: "invalid_text", detail: "must not contain U+0000" };
  return text.isWellFormed() ? undefined : { code: "invalid_text", detail: "must be well-formed Unicode" };
}

/** Numbers with an exponent; strings are matched first, so that numbers inside of them are skipped. */
const numberOrText = /"(?:[^"\\]|\\.)*"|-?\d+(?:\.\d+)?[eE][+-]?\d+/g;

function exponentsOf(text: string): number[] {
  if (!/\d[eE][+-]?\d/.test(text)) return [];
  return [...text.matchAll(numberOrText)].flatMap(([found]) =>
    found.startsWith('"') ? [] : [Number(found.slice(found.search(/[eE]/) + 1))],
  );
}

/** Upper bound of the bytes that written-out exponents add to the payload. */
function expandedBytes(text: string): number {
  return exponentsOf(text).reduce((sum, exponent) => sum + Math.abs(exponent) + 2, 0);
}
