import type { GuestBoot } from "@holdfast/image/guest-boot.ts";
import type { MachinePlan } from "../compute-provider.ts";
import {
  environmentOf,
  guestKey,
  imageKey,
  type InstanceFacts,
  instanceName,
  nicOf,
  identityKeys,
  rootOf,
} from "./instance-config.ts";

/** All inputs of a virtual machine's configuration. */
export interface VirtualMachineSpec extends InstanceFacts {
  readonly boot: GuestBoot;
  readonly disks: GuestDiskPaths;
  /** Socket of a QEMU monitor for Holdfast, in addition to Incus's monitor. */
  readonly monitor: string;
  /** Addresses of the host's resolvers. */
  readonly resolvers: readonly string[];
  /** First program and its arguments; paths are those inside. */
  readonly command: readonly string[];
}

/** Host files that a guest has as disks, which it finds by their device names. */
export interface GuestDiskPaths {
  /** Read-only squashfs, shared by all guests with the same node image, Node.js and code. */
  readonly image: string;
  readonly node: string;
  readonly code: string;
  /** Disks that only this machine has. */
  readonly data: string;
  readonly state: string;
  /** The enrollment; read-only. */
  readonly enrollment: string;
}

/**
 * The body of `POST /1.0/instances` for a virtual machine. The root begins empty; the guest's init formats it
 * (image/guest).
 */
export function virtualMachineConfig(spec: VirtualMachineSpec) {
  return {
    name: instanceName(spec.machineId),
    type: "virtual-machine",
    start: false,
    source: { type: "none" },
    config: {
      ...guestLimitsOf(spec.plan),
      ...identityKeys(spec),
      [imageKey]: spec.nodeImage,
      [guestKey]: spec.boot.id,
      // Kernel and initramfs come from the host, so firmware has nothing to verify.
      "security.secureboot": "false",
      "raw.qemu": rawQemu(spec),
    },
    devices: {
      root: { ...rootOf(spec), "io.bus": "virtio-blk" },
      // A guest's routed link inherits no MTU.
      eth0: { ...nicOf(spec), mtu: "1500" },
      image: disk(spec.disks.image, "read only"),
      node: disk(spec.disks.node, "read only"),
      code: disk(spec.disks.code, "read only"),
      enrollment: disk(spec.disks.enrollment, "read only"),
      data: disk(spec.disks.data, "read-write"),
      state: disk(spec.disks.state, "read-write"),
    },
  };
}

/** CPU and memory of a guest, which has an integer number of processors. */
function guestLimitsOf({ vcpu, memoryBytes }: MachinePlan): Record<string, string> {
  return { "limits.cpu": String(Math.max(1, Math.ceil(vcpu))), "limits.memory": String(memoryBytes) };
}

function disk(source: string, access: "read only" | "read-write") {
  return { type: "disk", source, readonly: String(access === "read only"), "io.bus": "virtio-blk" };
}

/**
 * With a kernel, Incus starts a guest without firmware. The kernel passes unknown parameters to init as environment.
 */
function rawQemu({ boot, monitor, ...spec }: VirtualMachineSpec): string {
  const environment = {
    ...environmentOf(spec),
    ...(spec.publicAddress && { HOLDFAST_PUBLIC_ADDRESS: spec.publicAddress }),
    HOLDFAST_GATEWAY: spec.hostAddress,
    HOLDFAST_RESOLVERS: spec.resolvers.join(","),
    HOLDFAST_IMAGE: spec.nodeImage,
  };
  const assignments = Object.entries(environment).map(([name, value]) => `${name}=${value}`);
  const append = ["console=ttyS0", "loglevel=4", "panic=1", "rdinit=/init", ...assignments, "--", ...spec.command];
  const monitored = `socket,id=holdfast,path=${monitor},server=on,wait=off`;
  const booted = ["-kernel", boot.kernel, "-initrd", boot.initramfs, "-append", append.join(" ")];
  return [...booted, "-chardev", monitored, "-mon", "chardev=holdfast,mode=control"].map(quoted).join(" ");
}

/** Quotes a word for a POSIX shell. */
function quoted(word: string): string {
  return /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", `'\\''`)}'`;
}
