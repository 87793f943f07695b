import type { ManagedServiceObject } from "#services/service/managed-service.ts";
import type { AuthObject } from "./auth.ts";

/** Names the data that users are in: other data than before mean that who was erased may be back. */
export function dataOf({ metadata, spec, status }: ManagedServiceObject, { spec: auth }: AuthObject): string {
  return `${metadata.id}/${auth.databaseName}/${spec.origin?.restoreId ?? ""}#${status.term}`;
}

/** Are they the same but for another primary, who may lack what came last? */
export function isSameButPrimary(erasedOver: string | null, data: string): boolean {
  return erasedOver !== null && erasedOver.split("#")[0] === data.split("#")[0];
}
