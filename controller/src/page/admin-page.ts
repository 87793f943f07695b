import type { Call } from "@holdfast/common/call.ts";
import type { Page } from "@holdfast/proto/holdfast/admin/v1/admin_pb.ts";
import type { Collection } from "../store/collection.ts";
import { type Cursors, defaultPageSize } from "./cursor.ts";

/** One page of a collection for an operator; an empty cursor ends the list. */
export function adminPage<R>(
  collection: Collection<R>,
  accepts: (object: R) => boolean,
  page: Page | undefined,
  call: Call,
  cursors: Cursors,
  list: string,
): { items: R[]; nextCursor: string } {
  const after = cursors.read(call, list, null, page?.cursor);
  const { items, next } = collection.page(accepts, { after, limit: limitOf(page) });
  return {
    items: items.map(({ object }) => object),
    nextCursor: next === undefined ? "" : cursors.make(call, list, null, next),
  };
}

/** How many entries a page of this request has. */
export function limitOf(page: Page | undefined): number {
  return page === undefined || page.limit === 0 ? defaultPageSize : page.limit;
}
