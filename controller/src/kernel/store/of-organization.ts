import type { Collection } from "./collection.ts";

/** Every object that an organization has, in id order; for counts and plans, never for an answer to a user. */
export function ofOrganization<R>(collection: Pick<Collection<R>, "page">, organizationId: string): R[] {
  const all = { after: undefined, limit: Number.POSITIVE_INFINITY, organizationId };
  const { items } = collection.page(() => true, all, { maxScanned: Number.POSITIVE_INFINITY });
  return items.map(({ object }) => object);
}
