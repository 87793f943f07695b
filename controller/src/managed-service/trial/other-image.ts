import type { MachineObject } from "../../machine/machine.ts";
import type { ManagedServiceObject } from "../managed-service.ts";

/** Does the machine run from another image than the service is to have? */
export function hasOtherImage({ spec: { image } }: ManagedServiceObject, machine: MachineObject): boolean {
  return image !== "" && machine.spec.image !== "" && machine.spec.image !== image;
}
