import type { Clock } from "@holdfast/common/clock.ts";
import { lookUp } from "@holdfast/common/look-up.ts";
import { ComputeFailure } from "../compute-failure.ts";
import type { GuestKernels, InstanceKind } from "../compute-provider.ts";
import type { DirectoryLock } from "../local/directory-lock.ts";
import { withGuestKernel } from "../local/image-sweep.ts";
import type { Layout } from "../local/machine-paths.ts";
import { writeRecord } from "../local/machine-record.ts";
import { guestKey } from "./instance-config.ts";
import type { InstanceTemplate } from "./instance-template.ts";
import type { InstancePower } from "./instance-power.ts";
import { kindOf } from "./instances.ts";
import type { MachineInventory } from "./machine-inventory.ts";

export interface GuestKernelsDeps {
  readonly layout: Layout;
  readonly lock: DirectoryLock;
  readonly inventory: Pick<MachineInventory, "record">;
  readonly power: Pick<InstancePower, "find">;
  readonly templates: Readonly<Record<InstanceKind, Pick<InstanceTemplate, "kernelFor">>>;
  readonly clock: Clock;
}

/** Records the kernel that a virtual machine boots from; the next start applies it to the instance. */
export function createGuestKernels({
  layout,
  lock,
  inventory,
  power,
  templates,
  clock,
}: GuestKernelsDeps): GuestKernels {
  return {
    replace: (id, kernel, signal) =>
      lock.withLock(id, signal, async () => {
        const [record, instance] = [await inventory.record(id), await power.find(id, signal)];
        // Builds the kernel now, not while the machine is stopped.
        if ((await templates[kindOf(record.spec)].kernelFor(kernel, signal)) === undefined)
          throw new ComputeFailure(`Machine ${id} is a container: it uses the host's kernel.`);
        const booted = lookUp(instance?.config ?? {}, guestKey) ?? "";
        await writeRecord(layout.machine(id).record, withGuestKernel(record, kernel, booted, clock.now()));
      }),
  };
}
