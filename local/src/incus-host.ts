import { existsSync, readdirSync, rmdirSync, rmSync } from "node:fs";
import { dirname, join } from "node:path";
import { removeAllDisks } from "@holdfast/compute/local/data-disk.ts";
import { removeContainerGroups } from "@holdfast/compute/incus/container-groups.ts";
import { createIncusClient, type IncusClient } from "@holdfast/compute/incus/incus-client.ts";
import {
  type IncusResources,
  createIncusResources,
  ForeignResource,
  ownerOf,
  removeIncusResources,
  stopInstances,
  unmountDisks,
  untilServing,
} from "@holdfast/compute/incus/incus-resources.ts";
import { edgeTable, removeEdge, removeIncusTable } from "@holdfast/compute/incus/machine-edge.ts";
import { removeLinks } from "@holdfast/compute/incus/host-link.ts";
import { removeRoutes } from "@holdfast/compute/incus/host-routes.ts";
import { runProgram } from "@holdfast/common/run-program.ts";
import {
  ensureIncusSoftware,
  incusChild,
  incusDirectory,
  IncusImpossible,
  incusSocket,
  isIncusInstalled,
} from "./incus-daemon.ts";
import type { MachineHost } from "./machine-host.ts";
import { withProgress } from "./progress.ts";
import { UserError } from "./user-error.ts";

export interface IncusHostOptions {
  /** Data directory of the installation. */
  readonly directory: string;
  /** First two octets of its loopback addresses, which contain its number among the host's installations. */
  readonly loopbackBlock: string;
  /** Socket of an existing daemon; undefined to run a daemon for the installation. */
  readonly socket: string | undefined;
  readonly cacheDir: string;
  readonly environment: Readonly<Record<string, string>>;
}

/** Incus on this host for one installation. `remove` removes all that it created. */
export interface IncusHost extends MachineHost {
  readonly socket: string;
  readonly resources: IncusResources;
  /** First two octets of the machines' addresses. */
  readonly addressBlock: string;
}

const gib = 1024 ** 3;
const poolBytes = 20 * gib;
/** Time limit for the daemon's start, which may take long with many machines. */
const startTimeoutMs = 60_000;
/** Time limit of each action on all machines. */
const actionTimeoutMs = 180_000;

/** Address block of the machines, which follows from the loopback block, unique on this host. */
export function addressBlockOf(loopbackBlock: string): string {
  return `10.${loopbackBlock.split(".")[1]}`;
}

function asUserError(error: unknown): never {
  throw error instanceof ForeignResource ? new UserError(error.message) : error;
}

export function createIncusHost(options: IncusHostOptions): IncusHost {
  const number = options.loopbackBlock.split(".")[1] ?? "";
  const ownDirectory = incusDirectory(number);
  const socket = options.socket ?? incusSocket(ownDirectory);
  const resources = { project: `holdfast-${number}`, pool: `holdfast-${number}`, poolBytes };
  const addressBlock = addressBlockOf(options.loopbackBlock);
  const address = ownAddressOf(addressBlock);

  async function withIncus<T>(run: (incus: IncusClient, signal: AbortSignal) => Promise<T>): Promise<T> {
    const incus = createIncusClient({ socket }, resources.project);
    try {
      await untilServing(incus, AbortSignal.timeout(startTimeoutMs));
      return await run(incus, AbortSignal.timeout(actionTimeoutMs));
    } finally {
      await incus.close();
    }
  }

  /** Data directory that owns project and pool. Throws a UserError if another existing installation does. */
  async function requireFree(incus: IncusClient, signal: AbortSignal): Promise<string | undefined> {
    const owner = await ownerOf(incus, resources, signal).catch(asUserError);
    // Another installation of this host, with another registry.
    if (owner !== undefined && owner !== options.directory && existsSync(join(owner, "installation.json")))
      throw new UserError(`the Incus daemon has machines of ${owner} in its project ${resources.project}`);
    return owner;
  }

  return {
    socket,
    resources,
    addressBlock,
    address,
    network: `${addressBlock}.0.0/16`,
    leftoverNotice:
      options.socket === undefined
        ? "the Incus packages remain installed: `apt-get purge --autoremove incus-base` removes them"
        : undefined,
    settings: {
      HOLDFAST_PROVIDER: "incus",
      HOLDFAST_INCUS_SOCKET: socket,
      HOLDFAST_INCUS_PROJECT: resources.project,
      HOLDFAST_INCUS_POOL: resources.pool,
      HOLDFAST_INCUS_ADDRESS_BLOCK: addressBlock,
      HOLDFAST_LOOPBACK_BLOCK: options.loopbackBlock,
    },
    allowedCidrs: ["127.0.0.0/8", `${address}/32`],
    daemon: options.socket === undefined ? incusChild(ownDirectory, options.directory, options.environment) : undefined,
    async install(print, signal) {
      try {
        await withProgress(print, async (begin) => {
          if (!isIncusInstalled()) begin("installing Incus (about half a minute)");
          await ensureIncusSoftware(options.cacheDir, signal);
        });
      } catch (error) {
        throw error instanceof IncusImpossible ? new UserError(error.message) : error;
      }
    },
    async open(signal) {
      await addHostAddress(address);
      await withIncus(async (incus, deadline) => {
        const combined = AbortSignal.any([signal, deadline]);
        // Remains of a data directory that was removed by hand.
        if ((await requireFree(incus, combined)) !== options.directory)
          await removeIncusResources(incus, resources, combined);
        await createIncusResources(incus, resources, options.directory, combined);
      });
    },
    async stopMachines(graceMs) {
      await withIncus(async (incus, deadline) => {
        await requireFree(incus, deadline);
        await stopInstances(incus, graceMs, deadline);
      });
      await unmountDisks(options.directory);
    },
    async remove({ keepsDisks } = { keepsDisks: false }) {
      await withIncus(async (incus, deadline) => {
        await requireFree(incus, deadline);
        await removeIncusResources(incus, resources, deadline);
      });
      await unmountDisks(options.directory);
      if (!keepsDisks) await removeAllDisks(options.directory);
      await removeNetwork(addressBlock, AbortSignal.timeout(actionTimeoutMs));
      if (options.socket === undefined) await removeIncusTable(AbortSignal.timeout(actionTimeoutMs));
      removeContainerGroups(resources.project);
    },
    removeDaemonState() {
      if (options.socket !== undefined) return;
      rmSync(ownDirectory, { recursive: true, force: true });
      // The host's last daemon removes the parent directory.
      const above = dirname(ownDirectory);
      if (existsSync(above) && readdirSync(above).length === 0) rmdirSync(above);
    },
  };
}

/** The host's own address in a block, where its machines find it. */
function ownAddressOf(addressBlock: string): string {
  return `${addressBlock}.0.1`;
}

/** Removes the block's links, routes, packet filter and host address. No machine may run. */
export async function removeNetwork(addressBlock: string, signal: AbortSignal): Promise<void> {
  await removeLinks(addressBlock);
  await removeRoutes(addressBlock, signal);
  await removeEdge(edgeTable(addressBlock), signal);
  await removeHostAddress(ownAddressOf(addressBlock));
}

/** Adds an address of the host for its machines; does nothing if it exists. */
async function addHostAddress(address: string): Promise<void> {
  await runProgram("ip", ["address", "replace", `${address}/32`, "dev", "lo"]);
}

/** Removes the address; does nothing if it does not exist. */
async function removeHostAddress(address: string): Promise<void> {
  const { stdout } = await runProgram("ip", ["-json", "address", "show", "dev", "lo", "to", `${address}/32`]);
  if (stdout.includes(`"${address}"`)) await runProgram("ip", ["address", "delete", `${address}/32`, "dev", "lo"]);
}
