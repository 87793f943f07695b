import type { OwnerKind } from "@holdfast/controller/fleet/owner/owner-kind.ts";
import { createOwners } from "@holdfast/controller/fleet/owner/owners.ts";
import type { Collection } from "@holdfast/controller/kernel/store/collection.ts";
import type { ManagedServiceObject } from "@holdfast/controller/services/service/managed-service.ts";
import { createServiceOwners } from "@holdfast/controller/services/machine-owners.ts";
import { partial } from "../partial.ts";

const absent = { get: () => undefined };
const noServices = partial<Collection<ManagedServiceObject>>(absent);

/** A kind of owner whose machines are created again elsewhere, and which ignores drains. */
const cacheOwnerKind: OwnerKind = {
  kind: "cache",
  noun: "cache",
  remedy: "Empty",
  describe: (id) => ({ name: `cache-${id}`, organizationId: "" }),
  isReplaceable: () => true,
  onHostLost: () => "deletes",
  drain: () => ({ outcome: "moves", reason: "Another cache is filled." }),
};

/** The kinds of owners that services contribute, without any of their objects, and the fixture's own. */
export const testOwners = createOwners([
  ...createServiceOwners({ services: noServices, drills: absent }),
  cacheOwnerKind,
]);
