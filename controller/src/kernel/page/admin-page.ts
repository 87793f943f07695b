import type { Call } from "@holdfast/common/call.ts";
import type { Page } from "@holdfast/proto/holdfast/admin/v1/admin_pb.ts";
import type { Collection } from "../store/collection.ts";
import { type Cursors, pageByName } from "./cursor.ts";

/** One page of a collection, for an operator; the last page has no `nextCursor`. */
export function adminPage<R>(
  collection: Pick<Collection<R>, "page">,
  accepts: (object: R) => boolean,
  requested: Page | undefined,
  call: Call,
  cursors: Cursors,
  list: string,
): { items: R[]; nextCursor?: string } {
  const page = cursors.open(call, list, null, requested);
  const { items, next } = collection.page(accepts, page);
  return { items: items.map(({ object }) => object), ...page.next(next) };
}

/** One page, for an operator, of a list that is complete in memory and ordered by names. */
export function adminPageByName<T>(
  all: Iterable<T>,
  nameOf: (item: T) => string,
  requested: Page | undefined,
  call: Call,
  cursors: Cursors,
  list: string,
): { items: T[]; nextCursor?: string } {
  const page = cursors.open(call, list, null, requested);
  const { items, next } = pageByName(all, nameOf, page);
  return { items, ...page.next(next) };
}
