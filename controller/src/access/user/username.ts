import { HoldfastError, invalid } from "@holdfast/common/errors.ts";
import type { Collection } from "#kernel/store/collection.ts";
import type { User } from "../credential/credential.ts";

/** Throws INVALID_REQUEST for a name in the form of a key's id, and NAME_TAKEN for a taken one. */
export function requireFreeUsername(username: string, users: Pick<Collection<User>, "get">): void {
  if (username.startsWith("hfk_"))
    throw invalid({ field: "username", code: "reserved", detail: "must not begin with hfk_, as keys do" });
  if (users.get(username) !== undefined) throw new HoldfastError("NAME_TAKEN", `${username} is in use.`);
}
