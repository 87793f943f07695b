import { type CatalogData, planOf } from "./catalog.ts";

/** Monthly price of a service, in integer cents. */
export interface ServicePrice {
  readonly planCents: number;
  readonly storageCents: number;
}

/** Price of a service. Each node has the plan and the storage. Throws for an unknown plan or tier. */
export function priceOfService(
  catalog: CatalogData,
  size: { readonly planName: string; readonly storageSizeGb: number; readonly storageTier: string },
  nodes = 1,
): ServicePrice {
  const tier = catalog.storageTiers.find(({ storageTier }) => storageTier === size.storageTier);
  if (tier === undefined) throw new Error(`the catalog has no storage tier ${size.storageTier}`);
  return {
    planCents: planOf(catalog, size.planName).monthlyCents * nodes,
    storageCents: tier.monthlyCentsPerGb * size.storageSizeGb * nodes,
  };
}

/** Cents as an amount of the currency, such as 41.6. */
export function amountOf(cents: number): number {
  return cents / 100;
}

/** True if the accepted amount is within 0.01 of the price (spec 3, Limits). */
export function isAccepted(acceptedAmount: number, cents: number): boolean {
  // Compare in cents, because floats cannot represent most amounts exactly.
  return Math.abs(acceptedAmount * 100 - cents) <= 1 + 1e-6;
}
