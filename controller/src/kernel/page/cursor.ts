import type { Call } from "@holdfast/common/call.ts";
import { HoldfastError } from "@holdfast/common/errors.ts";
import type { Sealer } from "../secrets/sealer.ts";

/** Cursors of lists: sealed with the organization, the list and its filter, so that a foreign one does not open. */
export interface Cursors {
  /** The page that a request asks for, or INVALID_REQUEST naming `cursor`. */
  open(call: Call, list: string, filter: unknown, asked: AskedPage | undefined): OpenPage;
}

/** How much of a list a request asks for, and where it goes on; 0 and an empty cursor are as if nothing were said. */
export interface AskedPage {
  readonly limit?: number | undefined;
  readonly cursor?: string | undefined;
}

/** Which part of a list a page is. */
export interface PageBounds {
  /** Position that it begins behind; undefined where the list begins. */
  readonly after: string | undefined;
  /** Entries at most. */
  readonly limit: number;
}

/** A page of a list, before it is read. */
export interface OpenPage extends PageBounds {
  /** To spread into the answer: the list goes on behind this position, and ends here without one. */
  next(position: string | undefined): { nextCursor?: string };
  /** For lists that are followed, which have a cursor on each page. */
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
