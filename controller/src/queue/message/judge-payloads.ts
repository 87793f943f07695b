import type { FieldFault } from "@holdfast/common/errors.ts";

/** Largest payload in bytes, as it is sent and as the database writes it without spaces. */
export const mostBytes = 262_144;
const deepest = 64;
/** Written out, a number with a greater one would be many times as long as it was sent. */
const greatestExponent = 1_000;

/** Faults in the payloads of a request, in their order. */
export interface PayloadVerdict {
  /** All faults but excessive size; oversized payloads are not examined further. */
  readonly faults: readonly FieldFault[];
  /** Indexes of oversized payloads. */
  readonly large: readonly number[];
}

export function judgePayloads(payloads: readonly Uint8Array[]): PayloadVerdict {
  const faults: FieldFault[] = [];
  const large: number[] = [];
  for (const [index, payload] of payloads.entries()) {
    if (payload.length === 0) continue;
    const text = payload.length > mostBytes ? undefined : Buffer.from(payload).toString("utf8");
    const found = text === undefined ? undefined : faultOf(text);
    if (found !== undefined) faults.push({ ...placeOf(index), ...found });
    if (text === undefined || payload.length + writtenOut(text) > mostBytes) large.push(index);
  }
  return { faults, large };
}

export function placeOf(index: number): Pick<FieldFault, "field" | "pointer"> {
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
  if (exponentsOf(text).some((exponent) => Math.abs(exponent) > greatestExponent))
    return { code: "out_of_range", detail: `must have no exponent beyond ${greatestExponent}` };
  return faultWithin(value, 1);
}

/** PostgreSQL takes no NUL and no half of a surrogate pair in a text. */
function faultWithin(value: unknown, depth: number): Pick<FieldFault, "code" | "detail"> | undefined {
  if (typeof value === "string") return faultOfText(value);
  if (typeof value !== "object" || value === null) return undefined;
  if (depth > deepest) return { code: "too_deep", detail: `must not be nested deeper than ${deepest}` };
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

/** How many bytes longer the payload is at most once its exponents are written out. */
function writtenOut(text: string): number {
  return exponentsOf(text).reduce((sum, exponent) => sum + Math.abs(exponent) + 2, 0);
}
