import type { Call } from "@holdfast/common/call.ts";
import { HoldfastError } from "@holdfast/common/errors.ts";
import type { Page } from "@holdfast/proto/holdfast/admin/v1/admin_pb.ts";
import type { Sealer } from "../secrets/sealer.ts";
import type { Collection } from "../store/collection.ts";

/**
 * Cursors of lists: a position, sealed with the organization, the list and its filter as associated data, so that a
 * cursor of another list does not open. The text of a cursor is the base64url of sealed text.
 */
export interface Cursors {
  /** Opens the requested page. Throws INVALID_REQUEST for the field `cursor`. */
  open(call: Call, list: string, filter: unknown, requested: RequestedPage | undefined): OpenPage;
}

/** Page size and cursor of a request; 0 and an empty cursor are the defaults. */
export interface RequestedPage {
  readonly limit?: number | undefined;
  readonly cursor?: string | undefined;
}

/** The range of a page. */
export interface PageBounds {
  /** Position after which the page begins; undefined: the beginning of the list. */
  readonly after: string | undefined;
  /** Maximum number of entries of the page. */
  readonly limit: number;
}

/** A requested page, before it is read. */
export interface OpenPage extends PageBounds {
  /** To spread into the response: the cursor of the position after which the list continues; undefined at its end. */
  next(position: string | undefined): { nextCursor?: string };
  /** The cursor of a position. Lists that clients follow have one on every page. */
  cursorAt(position: string): string;
}

const defaultPageSize = 50;

export function createCursors(sealer: Sealer): Cursors {
  function positionOf(cursor: string | undefined, label: string): string | undefined {
    if (cursor === undefined || cursor === "") return undefined;
    try {
      return sealer.open(Buffer.from(cursor, "base64url").toString("utf8"), label);
    } catch (cause) {
      const detail = "is not a cursor of this list with this filter";
      const errors = [{ field: "cursor", pointer: null, code: "invalid_cursor", detail }];
      throw new HoldfastError("INVALID_REQUEST", `cursor ${detail}`, { errors, cause });
    }
  }

  return {
    open(call, list, filter, { limit = 0, cursor } = {}) {
      const label = `cursor ${call.principal?.organizationId ?? ""} ${list} ${JSON.stringify(filter)}`;
      const cursorAt = (position: string) => Buffer.from(sealer.seal(position, label), "utf8").toString("base64url");
      return {
        after: positionOf(cursor, label),
        limit: limit === 0 ? defaultPageSize : limit,
        next: (position) => (position === undefined ? {} : { nextCursor: cursorAt(position) }),
        cursorAt,
      };
    },
  };
}

/** One page of a list that is complete in memory, in the order of its names, which are unique. */
export function pageByName<T>(
  all: Iterable<T>,
  nameOf: (item: T) => string,
  { after, limit }: PageBounds,
): { items: T[]; next: string | undefined } {
  const remaining = [...all]
    .filter((item) => after === undefined || nameOf(item) > after)
    .sort((a, b) => (nameOf(a) < nameOf(b) ? -1 : 1));
  const items = remaining.slice(0, limit);
  const last = items.at(-1);
  return { items, next: remaining.length > limit && last !== undefined ? nameOf(last) : undefined };
}

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
