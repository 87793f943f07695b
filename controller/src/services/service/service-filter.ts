import { lookUp } from "@holdfast/common/look-up.ts";
import type { ListManagedServicesRequest } from "@holdfast/proto/holdfast/v1/managed_service_pb.ts";
import type { ManagedServiceObject } from "./managed-service.ts";
import { shownStates } from "./managed-service-message.ts";

/** Pure: what a list lets through, and a label that binds its cursors to it. */
export function listFilter(request: ListManagedServicesRequest): {
  accepts: (service: ManagedServiceObject) => boolean;
  label: readonly unknown[];
} {
  const { name, status, databaseType, tag } = request;
  const colon = tag?.indexOf(":") ?? -1;
  const [key, value] = tag === undefined ? [] : [tag.slice(0, colon), tag.slice(colon + 1)];
  return {
    label: [name, status, databaseType, tag],
    accepts: ({ metadata, spec, status: current }) =>
      (name === undefined || metadata.name === name) &&
      (status === undefined || shownStates[current.state] === status) &&
      (databaseType === undefined || spec.databaseType === databaseType) &&
      (key === undefined || lookUp(spec.tags, key) === value),
  };
}
