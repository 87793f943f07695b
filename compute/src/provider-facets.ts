import { ComputeFailure } from "./compute-failure.ts";
import type { ComputeProvider, GuestKernels, MachineSnapshots } from "./compute-provider.ts";

/** The provider's guest kernels; throws ComputeFailure if it has none. */
export function requireGuestKernels({
  name,
  guestKernels,
}: Pick<ComputeProvider, "name" | "guestKernels">): GuestKernels {
  if (guestKernels === undefined) throw new ComputeFailure(`Machines of the provider ${name} share the host's kernel.`);
  return guestKernels;
}

/** The provider's snapshots; throws ComputeFailure if it has none. */
export function requireSnapshots({ name, snapshots }: Pick<ComputeProvider, "name" | "snapshots">): MachineSnapshots {
  if (snapshots === undefined) throw new ComputeFailure(`Machines of the provider ${name} have no snapshots.`);
  return snapshots;
}
