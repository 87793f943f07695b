import { createServer } from "node:net";
import { addressNetworkOf, hostAddressesOf } from "@holdfast/compute/local/address-network.ts";
import { removeAllDisks } from "@holdfast/compute/local/data-disk.ts";
import { stopAllMachines } from "@holdfast/compute/process/stop-machine.ts";
import type { ChildSpec } from "./child.ts";
import { UserError } from "./user-error.ts";

/** Compute providers of a host. */
export const hostProviders = ["process", "incus"] as const;
/** Compute providers of an installation; `none` leaves all machines to other hosts. */
export const providers = [...hostProviders, "none"] as const;
export type HostProviderName = (typeof hostProviders)[number];
export type ProviderName = (typeof providers)[number];

/** Parses a provider name. Throws a UserError for one that is not offered. */
export function readProvider<N extends ProviderName>(name: string, offered: readonly N[]): N {
  const found = offered.find((each) => each === name);
  if (found === undefined) throw new UserError(`--provider: ${name} is neither ${offered.join(" nor ")}`);
  return found;
}

/** Prepares this host for a compute provider, outside of the controllers. */
export interface MachineHost {
  /** Address at which machines find this host. */
  readonly address: string;
  /** Network of its machines, for which other machines need a route; undefined if only this host reaches them. */
  readonly network: string | undefined;
  /** Settings for controllers. */
  readonly settings: Readonly<Record<string, string>>;
  /** Allow-list of a new service whose request has none. */
  readonly allowedCidrs: readonly string[];
  /** A daemon to run; undefined if the provider needs none. */
  readonly daemon: ChildSpec | undefined;
  /** Installs missing software. Throws a UserError if that is impossible. */
  install(print: (line: string) => void, signal: AbortSignal): Promise<void>;
  /** Creates the resources for machines and controllers, after the start of the daemon. */
  open(signal: AbortSignal): Promise<void>;
  /** Stops all machines: in order within graceMs, then by force. The daemon must run, and no controller may. */
  stopMachines(graceMs: number): Promise<void>;
  /**
   * Removes all resources of the host outside of the data directory, and the disks in it. The daemon must run, and no
   * machine may. `keepsDisks` is for a directory without the installation's mark, whose files may be of others.
   */
  remove(options?: { readonly keepsDisks: boolean }): Promise<void>;
  /** Removes the daemon's state after the daemon has ended. */
  removeDaemonState(): void;
  /**
   * Notice about installed software that remains on the host, with the command that removes it; undefined if there is
   * none.
   */
  readonly leftoverNotice: string | undefined;
}

/** Machine host of controllers whose machines are all on other hosts. */
export function createNoHost(): MachineHost {
  const nothing = async () => undefined;
  return {
    address: "127.0.0.1",
    network: undefined,
    leftoverNotice: undefined,
    settings: { HOLDFAST_PROVIDER: "none" },
    allowedCidrs: ["127.0.0.0/8"],
    daemon: undefined,
    install: nothing,
    open: nothing,
    stopMachines: nothing,
    remove: nothing,
    removeDaemonState: () => undefined,
  };
}

/**
 * Machine host of the process provider. It only requires that `publicAddresses`, if it is a network, belongs to the
 * host.
 */
export function createProcessHost(directory: string, loopbackBlock: string, publicAddresses: string): MachineHost {
  const nothing = async () => undefined;
  return {
    address: "127.0.0.1",
    network: undefined,
    leftoverNotice: undefined,
    settings: { HOLDFAST_PROVIDER: "process", HOLDFAST_LOOPBACK_BLOCK: loopbackBlock },
    allowedCidrs: ["127.0.0.0/8"],
    daemon: undefined,
    install: nothing,
    open: () => requireOwn(publicAddresses),
    stopMachines: (graceMs) => stopAllMachines(directory, graceMs),
    remove: async ({ keepsDisks } = { keepsDisks: false }) => {
      if (!keepsDisks) await removeAllDisks(directory);
    },
    removeDaemonState: () => undefined,
  };
}

/** Throws a UserError if programs of this host cannot listen on the network's addresses. */
async function requireOwn(network: string): Promise<void> {
  if (network === "") return;
  const [address = ""] = hostAddressesOf(addressNetworkOf(network));
  const server = createServer();
  const problem = await new Promise<string | undefined>((resolve) => {
    server.once("error", (error: NodeJS.ErrnoException) => resolve(error.code ?? error.message));
    server.listen(0, address, () => server.close(() => resolve(undefined)));
  });
  if (problem !== undefined)
    throw new UserError(
      `--public-addresses: ${address} is not an address of this host (${problem}); machines of the process provider need one`,
    );
}
