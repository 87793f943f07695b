import { existsSync } from "node:fs";
import type { IncusClient } from "./incus-client.ts";

/** What of a host stands in the way of virtual machines, as far as can be seen without starting one. */
export interface GuestObstacles {
  readonly kvm: boolean;
  readonly vsock: boolean;
  readonly qemu: boolean;
}

/** Why no virtual machine can be made here, for users; undefined where one can. The daemon's own word counts. */
export async function whyNoGuests(incus: IncusClient, signal: AbortSignal): Promise<string | undefined> {
  const { environment } = await incus.call<{ environment: { driver: string } }>("GET", "/1.0", signal);
  if (environment.driver.split(" | ").includes("qemu")) return undefined;
  return guestRefusal({
    kvm: !existsSync("/dev/kvm"),
    vsock: !existsSync("/dev/vhost-vsock"),
    qemu: !["/usr/bin", "/usr/local/bin"].some((directory) => existsSync(`${directory}/qemu-system-x86_64`)),
  });
}

/** Pure: what is missing, and what to do. */
export function guestRefusal({ kvm, vsock, qemu }: GuestObstacles): string {
  const missing = [
    ...(kvm
      ? ["it has no KVM (/dev/kvm): switch virtualisation on in its firmware, or on the host that it is a guest of"]
      : []),
    ...(vsock ? ["it has no /dev/vhost-vsock: load the kernel module vhost_vsock"] : []),
    ...(qemu ? ["it has no QEMU: install qemu-system-x86, qemu-system-modules-spice and ovmf"] : []),
  ];
  const found = missing.length === 0 ? "its Incus does not offer them: the log of incusd says why" : missing.join("; ");
  return `The host cannot run virtual machines: ${found}; then restart Incus. Plans of kind container run here.`;
}
