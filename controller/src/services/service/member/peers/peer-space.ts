import { HoldfastError } from "@holdfast/common/errors.ts";
import type { Fleet } from "#fleet/fleet.ts";
import { engineProfileOf } from "../../../engine/engine-profiles.ts";
import type { ManagedServiceObject, NodeSpec } from "../../managed-service.ts";

const gib = 1024 ** 3;
/** Share of the remaining disks that the data may fill. From 95% on the engine refuses writes. */
const usableShare = 0.9;

/**
 * Throws NOT_ENOUGH_STORAGE if the other members have no space for a removed member's part of the data. A member that
 * has never reported counts as the average of the others: its part is copied from their replicas.
 */
export function requireSpace(
  { spec }: ManagedServiceObject,
  node: NodeSpec,
  { fleet }: { readonly fleet: Pick<Fleet, "observation"> },
): void {
  // Nothing is on a member that joins.
  if (engineProfileOf(spec.databaseType).peersShareData !== true || node.joining === true) return;
  const sizes = spec.nodes.flatMap(({ id }) => {
    const dataBytes = fleet.observation(id)?.instance.dataBytes;
    return dataBytes === undefined ? [] : [Number(dataBytes)];
  });
  if (sizes.length === 0) return;
  const dataBytes = (sizes.reduce((sum, size) => sum + size, 0) / sizes.length) * spec.nodes.length;
  const others = spec.nodes.filter(({ id, leaving }) => id !== node.id && leaving !== true).length;
  if (dataBytes <= usableShare * others * spec.storageSizeGb * gib) return;
  const figures = `${(dataBytes / gib).toFixed(1)} GB of data, and the disks of the other ${others} nodes`;
  throw new HoldfastError(
    "NOT_ENOUGH_STORAGE",
    `The service has ${figures} have ${others * spec.storageSizeGb} GB, of which ${usableShare * 100}% may be filled.`,
  );
}
