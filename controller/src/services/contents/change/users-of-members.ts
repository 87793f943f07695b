import { engineFormOf } from "../../engine/engine-forms.ts";
import type { ManagedServiceObject } from "../../service/managed-service.ts";
import { isReplicated } from "../../service/member/members.ts";

/** Pure: do the users of the service not come to its replicas with the data? */
export function hasUsersOnEachMember({ spec }: ManagedServiceObject): boolean {
  return isReplicated(spec) && engineFormOf(spec.databaseType).replicas?.haveOwnUsers === true;
}
