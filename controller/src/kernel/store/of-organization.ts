import type { Collection } from "./collection.ts";

/** All objects of an organization, in id order. For counts and plans; a response to a user uses `Collection.page`. */
export function ofOrganization<R>(collection: Pick<Collection<R>, "page">, organizationId: string): R[] {
  const all = { after: undefined, limit: Number.POSITIVE_INFINITY, organizationId };
  const { items } = collection.page(() => true, all, { maxScanned: Number.POSITIVE_INFINITY });
  return items.map(({ object }) => object);
}
