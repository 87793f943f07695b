import { ComputeFailure } from "./compute-failure.ts";
import type { ComputeProvider, MachineSnapshots } from "./compute-provider.ts";

/** The provider's snapshots; throws ComputeFailure if it has none. */
export function requireSnapshots({ name, snapshots }: Pick<ComputeProvider, "name" | "snapshots">): MachineSnapshots {
  if (snapshots === undefined) throw new ComputeFailure(`Machines of the provider ${name} have no snapshots.`);
  return snapshots;
}
