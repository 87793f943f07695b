import type { Call } from "@holdfast/common/call.ts";
import { HoldfastError } from "@holdfast/common/errors.ts";
import type { Sealer } from "../secrets/sealer.ts";

/** Cursors of lists: sealed with the organization, the list and its filter, so that a foreign one does not open. */
export interface Cursors {
  make(call: Call, list: string, filter: unknown, position: string): string;
  /** The position, or INVALID_REQUEST naming `cursor`. Undefined without a cursor. */
  read(call: Call, list: string, filter: unknown, cursor: string | undefined): string | undefined;
}

export const defaultPageSize = 50;

export function createCursors(sealer: Sealer): Cursors {
  const label = (call: Call, list: string, filter: unknown) =>
    `cursor ${call.principal?.organizationId ?? ""} ${list} ${JSON.stringify(filter)}`;
  return {
    make: (call, list, filter, position) =>
      Buffer.from(sealer.seal(position, label(call, list, filter)), "utf8").toString("base64url"),
    read(call, list, filter, cursor) {
      if (cursor === undefined || cursor === "") return undefined;
      try {
        return sealer.open(Buffer.from(cursor, "base64url").toString("utf8"), label(call, list, filter));
      } catch (cause) {
        const detail = "is not a cursor of this list with this filter";
        const errors = [{ field: "cursor", pointer: null, code: "invalid_cursor", detail }];
        throw new HoldfastError("INVALID_REQUEST", `cursor ${detail}`, { errors, cause });
      }
    },
  };
}
