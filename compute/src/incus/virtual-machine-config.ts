import type { GuestBoot } from "@holdfast/image/guest-boot.ts";
import type { MachinePlan } from "../compute-provider.ts";
import {
  environmentOf,
  guestKey,
  imageKey,
  type InstanceFacts,
  instanceName,
  nicOf,
  ownKeys,
  rootOf,
} from "./instance-config.ts";

/** All that a virtual machine is made from. */
export interface VirtualMachineSpec extends InstanceFacts {
  readonly boot: GuestBoot;
  readonly disks: GuestDiskPaths;
  /** Socket for the monitor of its own, besides Incus's. */
  readonly monitor: string;
  /** Addresses of the host's resolvers. */
  readonly resolvers: readonly string[];
  /** First program and its arguments, with paths as they are inside. */
  readonly command: readonly string[];
}

/** Files of the host that a guest has as disks; it knows each by the name of its device. */
export interface GuestDiskPaths {
  /** Read only, and shared by all that have the same: node image, node and code as squashfs. */
  readonly image: string;
  readonly node: string;
  readonly code: string;
  /** The machine's own. */
  readonly data: string;
  readonly state: string;
  /** What it enrolls with; read only. */
  readonly enrollment: string;
}

/** Pure: the body of `POST /1.0/instances`. The root begins empty; the guest's init makes its file system (image/guest). */
export function virtualMachineConfig(spec: VirtualMachineSpec) {
  return {
    name: instanceName(spec.machineId),
    type: "virtual-machine",
    start: false,
    source: { type: "none" },
    config: {
      ...guestLimitsOf(spec.plan),
      ...ownKeys(spec),
      [imageKey]: spec.nodeImage,
      [guestKey]: spec.boot.id,
      // Kernel and initramfs come from the host, so there is nothing for a firmware to check.
      "security.secureboot": "false",
      "raw.qemu": rawQemu(spec),
    },
    devices: {
      root: { ...rootOf(spec), "io.bus": "virtio-blk" },
      // A routed link of a guest has no MTU to take over.
      eth0: { ...nicOf(spec), mtu: "1500" },
      image: disk(spec.disks.image, "read only"),
      node: disk(spec.disks.node, "read only"),
      code: disk(spec.disks.code, "read only"),
      enrollment: disk(spec.disks.enrollment, "read only"),
      data: disk(spec.disks.data, "its own"),
      state: disk(spec.disks.state, "its own"),
    },
  };
}

/** Whole processors, which is what a guest has. */
function guestLimitsOf({ vcpu, memoryBytes }: MachinePlan): Record<string, string> {
  return { "limits.cpu": String(Math.max(1, Math.ceil(vcpu))), "limits.memory": String(memoryBytes) };
}

function disk(source: string, access: "read only" | "its own") {
  return { type: "disk", source, readonly: String(access === "read only"), "io.bus": "virtio-blk" };
}

/** Incus starts a guest without firmware when it is given a kernel; the kernel hands what it does not know to init. */
function rawQemu({ boot, monitor, ...spec }: VirtualMachineSpec): string {
  const environment = {
    ...environmentOf(spec),
    ...(spec.publicAddress && { HOLDFAST_PUBLIC_ADDRESS: spec.publicAddress }),
    HOLDFAST_GATEWAY: spec.hostAddress,
    HOLDFAST_RESOLVERS: spec.resolvers.join(","),
    HOLDFAST_IMAGE: spec.nodeImage,
  };
  const words = Object.entries(environment).map(([name, value]) => `${name}=${value}`);
  const append = ["console=ttyS0", "loglevel=4", "panic=1", "rdinit=/init", ...words, "--", ...spec.command];
  const monitored = `socket,id=holdfast,path=${monitor},server=on,wait=off`;
  const booted = ["-kernel", boot.kernel, "-initrd", boot.initramfs, "-append", append.join(" ")];
  return [...booted, "-chardev", monitored, "-mon", "chardev=holdfast,mode=control"].map(quoted).join(" ");
}

/** As a POSIX shell reads it. */
function quoted(word: string): string {
  return /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", `'\\''`)}'`;
}
