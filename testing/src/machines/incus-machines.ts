import { existsSync, mkdirSync, mkdtempSync, readFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { systemClock } from "@holdfast/common/clock.ts";
import { silentLog } from "@holdfast/common/log.ts";
import { guestRefusal } from "@holdfast/compute/incus/admission.ts";
import { createIncusClient, type IncusClient } from "@holdfast/compute/incus/incus-client.ts";
import { type IncusResources, untilServing } from "@holdfast/compute/incus/incus-resources.ts";
import {
  createIncusProvider,
  type IncusProvider,
  type IncusProviderDeps,
} from "@holdfast/compute/incus/incus-provider.ts";
import { instanceName } from "@holdfast/compute/incus/instance-config.ts";
import { addressNetworkOf } from "@holdfast/compute/local/address-network.ts";
import { detectAbilities } from "@holdfast/compute/local/host-abilities.ts";
import { layoutOf } from "@holdfast/compute/local/machine-paths.ts";
import { readStorageTiers } from "@holdfast/compute/local/storage-tiers.ts";
import { statOf } from "@holdfast/compute/local/process-identity.ts";
import { cacheDirectory } from "@holdfast/image/node-image.ts";
import { openBoundedLog } from "@holdfast/local/bounded-log.ts";
import { startChild } from "@holdfast/local/child.ts";
import { ensureIncusSoftware, incusDirectory, IncusImpossible, incusSocket } from "@holdfast/local/incus-daemon.ts";
import { addressBlockOf, createIncusHost } from "@holdfast/local/incus-host.ts";
import type { ClientsOfHost } from "../network/network-cuts.ts";
import { guardDirectory } from "../platform/directory-guard.ts";
import type { Platform } from "../platform/platform.ts";
import { isAlive } from "../platform/platform-processes.ts";
import { testCheckout } from "./process-machines.ts";
import { createTestNodeImages, type TestNodeImages } from "./test-node-images.ts";
import { waitUntil } from "../wait-until.ts";

/** A separate Incus daemon with a provider over it. Its machines run a stand-in for the keeper. */
export interface TestIncus {
  readonly directory: string;
  readonly layout: ReturnType<typeof layoutOf>;
  readonly provider: IncusProvider;
  readonly images: TestNodeImages;
  /** Client of the daemon that bypasses the provider. */
  readonly incus: IncusClient;
  /** Another provider over the same directory and daemon, with any client. */
  another(incus?: IncusClient): IncusProvider;
  /** Socket of the daemon, and the test's objects in it. */
  readonly socket: string;
  readonly resources: IncusResources;
  /** First two numbers of its machines' addresses. */
  readonly addressBlock: string;
  /** Network of its machines' public addresses. */
  readonly publicBlock: string;
  /** Kills the daemon with SIGKILL; machines continue to run, and the next daemon is started immediately. */
  killDaemon(): Promise<void>;
  /** Simulates a reboot: the machine is not running any more, and no daemon observed its end. */
  reboot(instance: string): Promise<void>;
  close(): Promise<void>;
}

/** Reason why no Incus can run here; undefined when one can. Installs it where that is possible. */
export async function incusMissing(): Promise<string | undefined> {
  try {
    await ensureIncusSoftware(cacheDirectory(process.env), AbortSignal.timeout(300_000));
    return undefined;
  } catch (error) {
    if (error instanceof IncusImpossible) return error.message;
    throw error;
  }
}

/** Reason why no virtual machine can run here, by the daemon; undefined when one can. */
export async function guestsMissing(): Promise<string | undefined> {
  const missing = await incusMissing();
  if (missing !== undefined) return missing;
  // Without QEMU there is no need to start a daemon.
  if (!existsSync("/usr/bin/qemu-system-x86_64")) return guestRefusal({ kvm: false, vsock: false, qemu: true });
  const machines = await startTestIncus({ command: [] });
  try {
    return await machines.provider.virtualMachineRefusal(AbortSignal.timeout(30_000));
  } finally {
    await machines.close();
  }
}

/** A number that no installation has, and no other test at the same time. */
export function claimIncusNumber(): string {
  for (let number = 20; number < 70; number += 1) {
    const directory = incusDirectory(String(number));
    mkdirSync(dirname(directory), { recursive: true });
    try {
      mkdirSync(directory);
      return String(number);
    } catch {
      // Another test has it.
    }
  }
  throw new Error(`remove what tests have left in ${incusDirectory("20")} to ${incusDirectory("69")}`);
}

export async function startTestIncus(
  options: Pick<IncusProviderDeps, "preparedDisks"> & {
    readonly command: readonly string[];
    /** Entries of HOLDFAST_STORAGE_TIERS. */
    readonly tiers?: readonly string[];
    /** Pools for the roots of some tiers, which the test creates. */
    readonly pools?: Readonly<Record<string, string>>;
  },
): Promise<TestIncus> {
  const number = claimIncusNumber();
  const directory = mkdtempSync(join(tmpdir(), "holdfast-incus-"));
  const guards = [guardDirectory(directory), guardDirectory(incusDirectory(number))];
  const layout = layoutOf(directory);
  const images = createTestNodeImages();
  const signal = AbortSignal.timeout(600_000);
  const host = createIncusHost({
    directory,
    loopbackBlock: `127.${number}`,
    socket: undefined,
    cacheDir: cacheDirectory(process.env),
    environment: { PATH: process.env["PATH"] ?? "" },
  });
  const abilities = await detectAbilities();
  const publicBlock = `198.19.${number}.0/24`;
  const log = openBoundedLog(join(directory, "incus.log"), { maxBytes: 1 << 20, filesMax: 1 });
  if (host.daemon === undefined) throw new Error("this test needs its own Incus daemon");
  const daemon = startChild(host.daemon, { log, print: () => undefined, monotonicMs: systemClock.monotonicMs });
  await host.open(signal);

  const opened: { close(): Promise<void> }[] = [];
  const connect = () => {
    const incus = createIncusClient({ socket: host.socket }, host.resources.project);
    opened.push(incus);
    return incus;
  };
  const another = (incus = connect()) =>
    createIncusProvider({
      incus,
      directory,
      addressBlock: host.addressBlock,
      publicBlock: addressNetworkOf(publicBlock),
      hostPorts: [1],
      pool: (tier) => options.pools?.[tier] ?? host.resources.pool,
      tiers: readStorageTiers(options.tiers ?? ["maxiops"]),
      imagesDir: images.imagesDir,
      checkout: testCheckout,
      node: process.execPath,
      abilities,
      environment: process.env,
      clock: systemClock,
      log: silentLog,
      command: options.command,
      ...(options.preparedDisks && { preparedDisks: options.preparedDisks }),
    });
  const incus = connect();

  /** The daemon first, then the process, so that the daemon does not observe the process's end. */
  async function kill(alsoPid?: number): Promise<void> {
    const pid = await daemonOf(incus);
    process.kill(pid, "SIGKILL");
    if (alsoPid !== undefined) process.kill(alsoPid, "SIGKILL");
    await waitUntil("the killed daemon has ended", () => !isAlive(pid));
    await untilServing(incus, signal);
  }

  return {
    directory,
    layout,
    provider: another(),
    images,
    incus,
    another,
    socket: host.socket,
    resources: host.resources,
    addressBlock: host.addressBlock,
    publicBlock,
    killDaemon: () => kill(),
    reboot: async (instance) => {
      const { pid } = await incus.call<{ pid: number }>("GET", `/1.0/instances/${instance}/state`, signal);
      const monitor = statOf(pid)?.parent ?? 0;
      await kill(pid);
      // A virtual machine has no such program: its parent is the first process of the host.
      if (monitor === 1) return;
      // LXC cleans up after the machine, and then the new daemon, which reports the machine as running until then;
      // after a real reboot neither happens.
      await waitUntil("LXC has tidied up", () => !isAlive(monitor));
      const path = `/1.0/instances/${instance}`;
      await waitUntil(
        "the daemon has tidied up",
        async () => (await incus.call<{ status: string }>("GET", path, signal)).status === "Stopped",
      );
    },
    async close() {
      await host.remove();
      await Promise.all(opened.map((each) => each.close()));
      await daemon.stop();
      images.close();
      // The number is released last: its next user would otherwise be killed with the remaining processes of this test.
      for (const guard of guards) await guard.end();
    },
  };
}

/** Listeners of a platform with machines of Incus. */
export function listeners({ directory }: Pick<Platform, "directory">) {
  const { ports, loopback_block, incus_socket } = JSON.parse(
    readFileSync(join(directory, "installation.json"), "utf8"),
  );
  return {
    host_address: `${addressBlockOf(loopback_block)}.0.1`,
    agents_port: Number(ports.agents),
    dns_port: Number(ports.dns),
    api_port: Number(ports.api),
    number: String(loopback_block).split(".")[1] ?? "",
    /** Socket of the daemon; its own when the platform was given none. */
    incus_socket: incus_socket as string | undefined,
  };
}

/** Clients of engines on the host of a platform. */
export function clientsOf(platform: Pick<Platform, "directory">): ClientsOfHost {
  return { address: listeners(platform).host_address, ports: [5432, 5433, 6379] };
}

/** The Incus of a platform, for fault injection. */
export function openIncusOf(platform: Pick<Platform, "directory">): IncusClient {
  const { number, incus_socket: socket = incusSocket(incusDirectory(number)) } = listeners(platform);
  return createIncusClient({ socket }, `holdfast-${number}`);
}

/** The keeper of a machine, by this host's pid. */
export async function firstProcessOf(incus: IncusClient, machineId: string): Promise<number> {
  const path = `/1.0/instances/${instanceName(machineId)}/state`;
  return (await incus.call<{ pid: number }>("GET", path, AbortSignal.timeout(30_000))).pid;
}

/** Pid of the daemon itself. */
export async function daemonOf(incus: IncusClient): Promise<number> {
  const path = "/1.0";
  const about = await incus.call<{ environment: { server_pid: number } }>("GET", path, AbortSignal.timeout(30_000));
  return about.environment.server_pid;
}
