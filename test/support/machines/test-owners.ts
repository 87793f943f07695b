import type { OwnerKind } from "@holdfast/controller/fleet/owner/owner-kind.ts";
import { createOwners } from "@holdfast/controller/fleet/owner/owners.ts";
import { createServiceOwners } from "@holdfast/controller/services/machine-owners.ts";

const absent = { get: () => undefined };

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
export const testOwners = createOwners([...createServiceOwners({ services: absent, drills: absent }), cacheOwnerKind]);
