import type { FieldFault } from "@holdfast/sdk/errors.ts";

/** The fields of an input whose values differ from the initial ones. */
export function editedOf<V extends object>(initial: V, input: Partial<V>): Partial<V> {
  const before = new Map<string, unknown>(Object.entries(initial));
  const isEdited = ([name, value]: [string, unknown]) => JSON.stringify(before.get(name)) !== JSON.stringify(value);
  return Object.fromEntries(Object.entries(input).filter(isEdited)) as Partial<V>;
}

/** The faults of a field and of its members, as one sentence; undefined without any. */
export function faultOf(faults: readonly FieldFault[], field: string): string | undefined {
  const matching = faults.filter((fault) => isOf(fault, field));
  if (matching.length === 0) return undefined;
  return matching.map((fault) => memberText(fault, field)).join(" ");
}

/** A fault of a field or of its member; an entry of a list has its number, from 1 on. */
function memberText({ field: of, detail }: FieldFault, field: string): string {
  if (of === field) return sentence(detail);
  const [, index] = /^\[(\d+)\]$/.exec(of.slice(field.length)) ?? [];
  return index === undefined ? `${of} ${detail}.` : `Entry ${Number(index) + 1} ${detail}.`;
}

/** The text beside the button of a refused form: the faults of fields that the form does not have. */
export function refusedText(faults: readonly FieldFault[], fieldNames: readonly string[]): string | undefined {
  if (faults.length === 0) return undefined;
  const others = faults.filter((fault) => !fieldNames.some((field) => isOf(fault, field)));
  const marked = others.length < faults.length ? ["Correct the marked fields."] : [];
  return [...marked, ...others.map(({ field, detail }) => `${field} ${detail}.`)].join(" ");
}

function isOf({ field: of }: FieldFault, field: string): boolean {
  return of === field || of.startsWith(`${field}.`) || of.startsWith(`${field}[`);
}

function sentence(detail: string): string {
  return `${detail.charAt(0).toUpperCase()}${detail.slice(1)}.`;
}
