import { defineKind } from "@holdfast/controller/kernel/store/kind.ts";
import type { Resource } from "@holdfast/controller/kernel/store/resource.ts";

/**
 * An owner of one machine that is not a service. It belongs to the platform or to an organization. Another machine can
 * replace its own anywhere, since it has no data.
 */
export type Board = Resource<{ readonly zone: string }, object>;

/** Storage of a board's machine. */
const boardStorageGb = 1;

export const boardKind = defineKind<Board>("board", {
  deletedWithOrganization: true,
  // Storage of boards counts together with the storage of services.
  quotas: [{ name: "storageGb", label: "GB of storage", limit: 102_400, amountOf: () => boardStorageGb }],
});

/** Port at which clients reach the engine on a board's machine. */
export const boardPort = 6_379;
