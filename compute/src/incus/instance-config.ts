import { basename, dirname, join } from "node:path";
import { type MachinePlan, rootBytesOf } from "../compute-provider.ts";
import type { MachinePaths } from "../local/machine-paths.ts";
import { codeInside } from "../local/place.ts";

/** What a machine is to Incus, whichever kind it is. */
export interface InstanceFacts {
  readonly machineId: string;
  readonly installationId: string;
  /** Id of the node image that it runs from. */
  readonly nodeImage: string;
  /** Id of the kernel that a virtual machine boots from; undefined for a container. */
  readonly guestKernel?: string | undefined;
  readonly pool: string;
  readonly plan: MachinePlan;
  readonly address: string;
  /** Undefined where it has none besides. */
  readonly publicAddress?: string | undefined;
  /** Where the machine finds its host, and the host's own address towards it. */
  readonly hostAddress: string;
  /** Name of the host's end of its network, at most 15 characters. */
  readonly hostName: string;
  readonly paths: MachinePaths;
}

/** All that a container is made from. */
export interface InstanceSpec extends InstanceFacts {
  /** Fingerprint of the image in Incus. */
  readonly image: string;
  /** Keeper and agent as they were made for machines. */
  readonly code: string;
  /** The node binary on the host. */
  readonly node: string;
  /** First program and its arguments, with paths as they are inside. */
  readonly command: readonly string[];
}

/** Users inside; the image names them. On the host they are others for each machine. */
export const inside = { engine: 61_000, agent: 61_001 } as const;

/** Where an instance says which node image its root was made from. */
export const imageKey = "user.holdfast.image";
/** Where a virtual machine says what it boots from. */
export const guestKey = "user.holdfast.guest";
/** Far above what an engine with thousands of sessions has; a fork bomb ends here and not on the host. */
const processesMax = 8_192;

/** Names of instances must begin with a letter, and ids may not. */
export function instanceName(machineId: string): string {
  return `hf-${machineId}`;
}

/** Undefined for an instance that is not ours. */
export function machineIdOf(instance: string): string | undefined {
  return instance.startsWith("hf-") ? instance.slice(3) : undefined;
}

/** Pure: the body of `POST /1.0/instances`. */
export function instanceConfig(spec: InstanceSpec) {
  const { paths } = spec;
  return {
    name: instanceName(spec.machineId),
    type: "container",
    start: false,
    source: { type: "image", fingerprint: spec.image },
    config: {
      ...limitsOf(spec.plan),
      ...ownKeys(spec),
      [imageKey]: spec.nodeImage,
      "security.idmap.isolated": "true",
      "limits.processes": String(processesMax),
      ...prefixed("environment.", environmentOf(spec)),
      "raw.lxc": rawLxc(spec.command),
    },
    devices: {
      root: rootOf(spec),
      eth0: nicOf(spec),
      data: { type: "disk", path: "/data", source: dataSource(paths), shift: "true" },
      state: { type: "disk", path: "/var/lib/holdfast", source: paths.state, shift: "true" },
      node: { type: "disk", path: "/holdfast/node", source: dirname(spec.node), readonly: "true" },
      code: { type: "disk", path: codeInside, source: spec.code, readonly: "true" },
    },
  };
}

/** What an instance of either kind says of itself. */
export function ownKeys({ machineId, installationId }: InstanceFacts): Record<string, string> {
  return {
    // Who starts a machine is the controller, which brings a fresh enrollment.
    "boot.autostart": "false",
    "security.guestapi": "false",
    "user.holdfast.machine": machineId,
    "user.holdfast.installation": installationId,
  };
}

/** Environment of the first program. */
export function environmentOf({ machineId, address }: InstanceFacts): Record<string, string> {
  return {
    PATH: "/usr/sbin:/usr/bin",
    LANG: "C.UTF-8",
    HOLDFAST_MACHINE_ID: machineId,
    HOLDFAST_ADDRESS: address,
    HOLDFAST_NETWORK_INTERFACE: "eth0",
    HOLDFAST_MACHINE_UID: String(inside.engine),
    HOLDFAST_AGENT_UID: String(inside.agent),
    HOLDFAST_AGENT_MAIN: `${codeInside}/main.mjs`,
    NODE_COMPILE_CACHE: `${codeInside}/compile-cache`,
  };
}

/**
 * Routed: no network of layer 2 between machines, so nobody can answer for another one's address, and each packet passes the
 * host's rules.
 */
export function nicOf({ address, publicAddress, hostAddress, hostName }: InstanceFacts) {
  return {
    type: "nic",
    nictype: "routed",
    name: "eth0",
    host_name: hostName,
    hwaddr: hardwareAddress(address),
    // What the machine itself begins comes from the first of them.
    "ipv4.address": [address, publicAddress ?? []].flat().join(","),
    "ipv4.host_address": hostAddress,
    "ipv4.neighbor_probe": "false",
  };
}

/** The image of a container counts in; a virtual machine has its image beside the root. */
export function rootOf({ pool, plan }: Pick<InstanceFacts, "pool" | "plan">) {
  return { type: "disk", path: "/", pool, size: String(rootBytesOf(plan)) };
}

/** CPU as a share of time, so that no machine is tied to a processor; what is over the memory is killed, not the machine. */
export function limitsOf({ vcpu, memoryBytes }: MachinePlan): Record<string, string> {
  return { "limits.cpu.allowance": `${vcpu * 100}ms/100ms`, "limits.memory": String(memoryBytes) };
}

/** /data of a machine is this directory of its disk: while the disk is not mounted it is not there, and nothing starts. */
export const dataInDisk = "/data/data";

/** Where that is on the host. */
export function dataSource(paths: MachinePaths): string {
  return join(paths.dataDirectory, basename(dataInDisk));
}

/** The keeper is the first process; what systemd would do, LXC does: addresses, `lo`, and these mounts. */
function rawLxc(command: readonly string[]): string {
  const mounts = [
    "tmpfs run tmpfs rw,nosuid,nodev,mode=755",
    "tmpfs tmp tmpfs rw,nosuid,nodev,mode=1777",
    "tmpfs dev/shm tmpfs rw,nosuid,nodev,mode=1777,create=dir",
  ];
  return [
    `lxc.init.cmd=${command.join(" ")}`,
    "lxc.signal.halt=SIGTERM",
    ...mounts.map((mount) => `lxc.mount.entry=${mount} 0 0`),
    // Its own groups, which an init like systemd would have mounted: the agent reads there what the kernel ended for want of memory.
    "lxc.mount.auto=cgroup:ro:force",
    "",
  ].join("\n");
}

/** The same for an address each time, so that nobody's memory of who has an address is ever wrong. */
function hardwareAddress(address: string): string {
  const bytes = address.split(".").map((byte) => Number(byte).toString(16).padStart(2, "0"));
  return ["0a", "48", ...bytes].join(":");
}

function prefixed(prefix: string, values: Readonly<Record<string, string>>): Record<string, string> {
  return Object.fromEntries(Object.entries(values).map(([name, value]) => [`${prefix}${name}`, value]));
}
