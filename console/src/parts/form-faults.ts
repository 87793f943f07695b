import type { FieldFault } from "@holdfast/sdk/errors.ts";

/** The faults of a field and of its members, as one sentence; undefined without any. */
export function faultOf(faults: readonly FieldFault[], field: string): string | undefined {
  const matching = faults.filter(
    ({ field: of }) => of === field || of.startsWith(`${field}.`) || of.startsWith(`${field}[`),
  );
  if (matching.length === 0) return undefined;
  return matching.map(({ field: of, detail }) => (of === field ? sentence(detail) : `${of} ${detail}.`)).join(" ");
}

function sentence(detail: string): string {
  return `${detail.charAt(0).toUpperCase()}${detail.slice(1)}.`;
}
