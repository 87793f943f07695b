import { ComputeFailure } from "./compute-failure.ts";
import type { ComputeProvider, GuestKernels } from "./compute-provider.ts";

/** The provider's guest kernels; throws ComputeFailure if it has none. */
export function requireGuestKernels({
  name,
  guestKernels,
}: Pick<ComputeProvider, "name" | "guestKernels">): GuestKernels {
  if (guestKernels === undefined) throw new ComputeFailure(`Machines of the provider ${name} share the host's kernel.`);
  return guestKernels;
}
