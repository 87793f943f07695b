import { basename, dirname, join } from "node:path";
import { type MachinePlan, rootBytesOf } from "../compute-provider.ts";
import { machineDataDirectory, type MachinePaths } from "../local/machine-paths.ts";
import { machineCodeDirectory } from "../local/machine-runtime.ts";

/** Facts of a machine that its instance is made from, for containers and virtual machines. */
export interface InstanceFacts {
  readonly machineId: string;
  readonly installationId: string;
  /** Id of the node image. */
  readonly nodeImage: string;
  /** Kernel id of a virtual machine; undefined for a container. */
  readonly guestKernel?: string | undefined;
  readonly pool: string;
  readonly plan: MachinePlan;
  readonly address: string;
  /** Undefined if the machine has no public address. */
  readonly publicAddress?: string | undefined;
  /** The host's own address on the machine's link, where machines find it. */
  readonly hostAddress: string;
  /** Name of the link on the host, at most 15 characters. */
  readonly hostName: string;
  readonly paths: MachinePaths;
}

/** All inputs of a container's configuration. */
export interface InstanceSpec extends InstanceFacts {
  /** Fingerprint of the image in Incus. */
  readonly image: string;
  /** Directory of the compiled keeper and agent. */
  readonly code: string;
  /** Path of the Node.js binary on the host. */
  readonly node: string;
  /** First program and its arguments; paths are those inside. */
  readonly command: readonly string[];
}

/** User ids inside an instance; the image names them. Each machine maps them to other ids of the host. */
export const instanceUsers = { engine: 61_000, agent: 61_001 } as const;

/** Configuration key with the node image of the instance's root. */
export const imageKey = "user.holdfast.image";
/** Configuration key with the kernel id of a virtual machine. */
export const guestKey = "user.holdfast.guest";
/** Limit against a fork bomb inside the machine; an engine with thousands of sessions needs fewer processes. */
const maxProcesses = 8_192;

/** Instance names must begin with a letter, and ids may not. */
export function instanceName(machineId: string): string {
  return `hf-${machineId}`;
}

/** Machine id of an instance; undefined for an instance that Holdfast did not create. */
export function machineIdOf(instance: string): string | undefined {
  return instance.startsWith("hf-") ? instance.slice(3) : undefined;
}

/** The body of `POST /1.0/instances` for a container. */
export function instanceConfig(spec: InstanceSpec) {
  const { paths } = spec;
  return {
    name: instanceName(spec.machineId),
    type: "container",
    start: false,
    source: { type: "image", fingerprint: spec.image },
    config: {
      ...limitsOf(spec.plan),
      ...identityKeys(spec),
      [imageKey]: spec.nodeImage,
      "security.idmap.isolated": "true",
      "limits.processes": String(maxProcesses),
      ...prefixed("environment.", environmentOf(spec)),
      "raw.lxc": rawLxc(spec.command),
    },
    devices: {
      root: rootOf(spec),
      eth0: nicOf(spec),
      data: { type: "disk", path: machineDataDirectory, source: dataSource(paths), shift: "true" },
      state: { type: "disk", path: "/var/lib/holdfast", source: paths.state, shift: "true" },
      node: { type: "disk", path: "/holdfast/node", source: dirname(spec.node), readonly: "true" },
      code: { type: "disk", path: machineCodeDirectory, source: spec.code, readonly: "true" },
    },
  };
}

/** Configuration keys that identify an instance of either kind. */
export function identityKeys({ machineId, installationId }: InstanceFacts): Record<string, string> {
  return {
    // Only the controller starts a machine, with a new enrollment.
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
    HOLDFAST_MACHINE_UID: String(instanceUsers.engine),
    HOLDFAST_AGENT_UID: String(instanceUsers.agent),
    HOLDFAST_AGENT_MAIN: `${machineCodeDirectory}/main.mjs`,
    NODE_COMPILE_CACHE: `${machineCodeDirectory}/compile-cache`,
  };
}

/**
 * A routed link: machines share no layer 2 network, so none can spoof another's address, and each packet passes the
 * host's rules.
 */
export function nicOf({ address, publicAddress, hostAddress, hostName }: InstanceFacts) {
  return {
    type: "nic",
    nictype: "routed",
    name: "eth0",
    host_name: hostName,
    hwaddr: hardwareAddress(address),
    // The first address is the source address of connections that the machine opens.
    "ipv4.address": [address, publicAddress ?? []].flat().join(","),
    "ipv4.host_address": hostAddress,
    "ipv4.neighbor_probe": "false",
  };
}

/** The root device. The size includes the image for a container; a virtual machine has its image on another disk. */
export function rootOf({ pool, plan }: Pick<InstanceFacts, "pool" | "plan">) {
  return { type: "disk", path: "/", pool, size: String(rootBytesOf(plan)) };
}

/**
 * CPU as a share of time, so that a machine is not pinned to processors. Above the memory limit, processes are killed,
 * not the machine.
 */
export function limitsOf({ vcpu, memoryBytes }: MachinePlan): Record<string, string> {
  return { "limits.cpu.allowance": `${vcpu * 100}ms/100ms`, "limits.memory": String(memoryBytes) };
}

/** /data of a machine is this directory of its disk: without the mount it does not exist, and nothing starts. */
export const dataInDisk = "/data/data";

/** Host path of that directory. */
export function dataSource(paths: MachinePaths): string {
  return join(paths.dataDirectory, basename(dataInDisk));
}

/** The keeper is the first process; LXC does what systemd would: addresses, `lo`, and these mounts. */
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
    // The container's own control groups, which systemd would mount: the agent reads out-of-memory kills there.
    "lxc.mount.auto=cgroup:ro:force",
    "",
  ].join("\n");
}

/** Hardware address of a machine. It follows from the IP address, so that no neighbor cache has an outdated entry. */
function hardwareAddress(address: string): string {
  const bytes = address.split(".").map((byte) => Number(byte).toString(16).padStart(2, "0"));
  return ["0a", "48", ...bytes].join(":");
}

function prefixed(prefix: string, values: Readonly<Record<string, string>>): Record<string, string> {
  return Object.fromEntries(Object.entries(values).map(([name, value]) => [`${prefix}${name}`, value]));
}
