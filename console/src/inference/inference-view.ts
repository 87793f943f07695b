import type { InferenceSettings } from "@holdfast/sdk/responses.ts";

/** An amount of cents in the catalog's currency: "$12.34". */
export function centsText(cents: number, currency: string): string {
  return (cents / 100).toLocaleString("en", { style: "currency", currency });
}

/** The part of the month's limit that is spent or reserved, 0 to 100. */
export function spentPercent({ monthly_cost_limit_cents: limit, circuit }: InferenceSettings): number {
  if (limit <= 0) return 100;
  return Math.min(100, Math.round(((circuit.spent_cents + circuit.reserved_cents) / limit) * 100));
}

/** The number in a text; undefined for an empty text. */
export function numberOf(text: string): number | undefined {
  return text.trim() === "" ? undefined : Number(text);
}
