import { existsSync, readdirSync, rmdirSync, rmSync } from "node:fs";
import { dirname, join } from "node:path";
import { removeAllDisks } from "@holdfast/compute/local/data-disk.ts";
import { removeContainerGroups } from "@holdfast/compute/incus/container-groups.ts";
import { createIncusClient, type IncusClient } from "@holdfast/compute/incus/incus-client.ts";
import {
  type IncusEstate,
  makeEstate,
  NotOurs,
  ownerOf,
  removeEstate,
  stopInstances,
  unmountDisks,
  untilServing,
} from "@holdfast/compute/incus/incus-estate.ts";
import { removeIncusTable } from "@holdfast/compute/incus/machine-edge.ts";
import { addHostAddress } from "./host-address.ts";
import { incusChild, incusDirectory, incusSocket } from "./incus-daemon.ts";
import { ownAddressOf, removeNetwork } from "./incus-network.ts";
import { ensureIncusSoftware, IncusImpossible, isIncusInstalled } from "./incus-software.ts";
import type { MachineHost } from "./machine-host.ts";
import { withSigns } from "./signs-of-life.ts";
import { UserError } from "./user-error.ts";

export interface IncusHostOptions {
  /** Data directory of the installation. */
  readonly directory: string;
  /** First two octets of its loopback addresses: its number among the installations of this host. */
  readonly loopbackBlock: string;
  /** Socket of a daemon that is there already; one of our own is run when undefined. */
  readonly socket: string | undefined;
  readonly cacheDir: string;
  readonly environment: Readonly<Record<string, string>>;
}

/** Incus on this host as one installation uses it. Whatever it makes, `remove` takes away. */
export interface IncusHost extends MachineHost {
  readonly socket: string;
  readonly estate: IncusEstate;
  /** First two numbers of the machines' addresses. */
  readonly addressBlock: string;
}

const gib = 1024 ** 3;
const poolBytes = 20 * gib;
/** A daemon that starts with many machines may take some time; one that hangs must not hang us. */
const servingWithinMs = 60_000;
/** Any of what is done here, for all machines together. */
const doneWithinMs = 180_000;

/** Addresses of machines go with the loopback block, which is the installation's alone on this host. */
export function addressBlockOf(loopbackBlock: string): string {
  return `10.${loopbackBlock.split(".")[1]}`;
}

function asUserError(error: unknown): never {
  throw error instanceof NotOurs ? new UserError(error.message) : error;
}

export function createIncusHost(options: IncusHostOptions): IncusHost {
  const number = options.loopbackBlock.split(".")[1] ?? "";
  const ownDirectory = incusDirectory(number);
  const socket = options.socket ?? incusSocket(ownDirectory);
  const estate = { project: `holdfast-${number}`, pool: `holdfast-${number}`, poolBytes };
  const addressBlock = addressBlockOf(options.loopbackBlock);
  const address = ownAddressOf(addressBlock);

  async function withIncus<T>(run: (incus: IncusClient, signal: AbortSignal) => Promise<T>): Promise<T> {
    const incus = createIncusClient({ socket }, estate.project);
    try {
      await untilServing(incus, AbortSignal.timeout(servingWithinMs));
      return await run(incus, AbortSignal.timeout(doneWithinMs));
    } finally {
      await incus.close();
    }
  }

  /** Whose the project and the pool are. Throws a UserError when that is another living installation. */
  async function requireFree(incus: IncusClient, signal: AbortSignal): Promise<string | undefined> {
    const owner = await ownerOf(incus, estate, signal).catch(asUserError);
    // Another installation of this host, which has a registry of its own.
    if (owner !== undefined && owner !== options.directory && existsSync(join(owner, "installation.json")))
      throw new UserError(`the daemon of Incus has machines of ${owner} in its project ${estate.project}`);
    return owner;
  }

  return {
    socket,
    estate,
    addressBlock,
    address,
    network: `${addressBlock}.0.0/16`,
    remains:
      options.socket === undefined
        ? "packages of Incus stay: `apt-get purge --autoremove incus-base` takes them away"
        : undefined,
    settings: {
      HOLDFAST_PROVIDER: "incus",
      HOLDFAST_INCUS_SOCKET: socket,
      HOLDFAST_INCUS_PROJECT: estate.project,
      HOLDFAST_INCUS_POOL: estate.pool,
      HOLDFAST_INCUS_ADDRESS_BLOCK: addressBlock,
      HOLDFAST_LOOPBACK_BLOCK: options.loopbackBlock,
    },
    allowedCidrs: ["127.0.0.0/8", `${address}/32`],
    daemon: options.socket === undefined ? incusChild(ownDirectory, options.directory, options.environment) : undefined,
    async install(say, signal) {
      try {
        await withSigns(say, async (begin) => {
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
        const given = AbortSignal.any([signal, deadline]);
        // What a data directory that was removed by hand has left.
        if ((await requireFree(incus, given)) !== options.directory) await removeEstate(incus, estate, given);
        await makeEstate(incus, estate, options.directory, given);
      });
    },
    async stopMachines(graceMs) {
      await withIncus(async (incus, deadline) => {
        await requireFree(incus, deadline);
        await stopInstances(incus, graceMs, deadline);
      });
      await unmountDisks(options.directory);
    },
    async remove() {
      await withIncus(async (incus, deadline) => {
        await requireFree(incus, deadline);
        await removeEstate(incus, estate, deadline);
      });
      await unmountDisks(options.directory);
      await removeAllDisks(options.directory);
      await removeNetwork(addressBlock, AbortSignal.timeout(doneWithinMs));
      if (options.socket === undefined) await removeIncusTable(AbortSignal.timeout(doneWithinMs));
      removeContainerGroups(estate.project);
    },
    forget() {
      if (options.socket !== undefined) return;
      rmSync(ownDirectory, { recursive: true, force: true });
      // The last one of the host takes the directory above with it.
      const above = dirname(ownDirectory);
      if (existsSync(above) && readdirSync(above).length === 0) rmdirSync(above);
    },
  };
}
