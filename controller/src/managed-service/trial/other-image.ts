import type { MachineObject } from "../../machine/machine.ts";
import type { ManagedServiceObject } from "../managed-service.ts";

/** Does the machine run from another image, or boot from another kernel, than the service is to have? */
export function hasOtherImage({ spec }: ManagedServiceObject, machine: MachineObject): boolean {
  return isOther(spec.image, machine.spec.image) || isOther(spec.guestKernel, machine.spec.guestKernel);
}

/** Pure: image and kernel that the service's machines are to have, as far as either was ever chosen. */
export function chosenImages({
  spec,
}: ManagedServiceObject): Pick<Partial<MachineObject["spec"]>, "image" | "guestKernel"> {
  const { image, guestKernel } = spec;
  return { ...(image !== "" && { image }), ...(guestKernel !== undefined && { guestKernel }) };
}

/** Where none was chosen yet, any will do. */
function isOther(wanted = "", has = ""): boolean {
  return wanted !== "" && has !== "" && has !== wanted;
}
