import type { Clock } from "@holdfast/common/clock.ts";
import { lookUp } from "@holdfast/common/look-up.ts";
import { ComputeFailure } from "../compute-failure.ts";
import type { GuestKernels, InstanceKind } from "../compute-provider.ts";
import type { DirectoryLock } from "../local/directory-lock.ts";
import { withGuestKernel } from "../local/image-upkeep.ts";
import type { Layout } from "../local/machine-paths.ts";
import { writeRecord } from "../local/machine-record.ts";
import { guestKey } from "./instance-config.ts";
import type { InstanceForm } from "./instance-form.ts";
import type { InstancePower } from "./instance-power.ts";
import { kindOf } from "./instances.ts";
import type { MachineInventory } from "./machine-inventory.ts";

export interface GuestKernelsDeps {
  readonly layout: Layout;
  readonly lock: DirectoryLock;
  readonly inventory: Pick<MachineInventory, "record">;
  readonly power: Pick<InstancePower, "look">;
  readonly forms: Readonly<Record<InstanceKind, Pick<InstanceForm, "kernelFor">>>;
  readonly clock: Clock;
}

/** Which kernel a virtual machine boots from, in its record; its instance is given it at the start that follows. */
export function createGuestKernels({ layout, lock, inventory, power, forms, clock }: GuestKernelsDeps): GuestKernels {
  return {
    replace: (id, kernel, signal) =>
      lock.hold(id, signal, async () => {
        const [record, instance] = [await inventory.record(id), await power.look(id, signal)];
        // Now, and not while the machine is down.
        if ((await forms[kindOf(record.spec)].kernelFor(kernel, signal)) === undefined)
          throw new ComputeFailure(`Machine ${id} has no kernel of its own.`);
        const booted = lookUp(instance?.config ?? {}, guestKey) ?? "";
        await writeRecord(layout.machine(id).record, withGuestKernel(record, kernel, booted, clock.now()));
      }),
  };
}
