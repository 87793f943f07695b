import type { BatchResult } from "./run-inputs.ts";

/** Numbers of batches by area. */
export type AreaRates = Readonly<Record<string, { readonly passed: number; readonly batches: number }>>;

/** Batches with the expected outcomes by area, in the order of their names. */
export function summaryOf(results: readonly BatchResult[]): AreaRates {
  const areas = new Map<string, { passed: number; batches: number }>();
  for (const { area, difference } of results) {
    const rate = areas.get(area) ?? { passed: 0, batches: 0 };
    areas.set(area, rate);
    rate.batches += 1;
    if (difference === undefined) rate.passed += 1;
  }
  return Object.fromEntries([...areas].toSorted(([left], [right]) => (left < right ? -1 : 1)));
}
