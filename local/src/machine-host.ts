import { createServer } from "node:net";
import { addressNetworkOf, hostAddressesOf } from "@holdfast/compute/local/address-network.ts";
import { removeAllDisks } from "@holdfast/compute/local/data-disk.ts";
import { stopAllMachines } from "@holdfast/compute/process/stop-machine.ts";
import type { ChildSpec } from "./child.ts";
import { UserError } from "./user-error.ts";

/** Where machines of a host come from. */
export const hostProviders = ["process", "incus"] as const;
/** The same of an installation, which may leave them all to other hosts. */
export const providers = [...hostProviders, "none"] as const;
export type HostProviderName = (typeof hostProviders)[number];
export type ProviderName = (typeof providers)[number];

/** The name as one of those on offer. Throws a UserError for another one. */
export function readProvider<N extends ProviderName>(name: string, offered: readonly N[]): N {
  const found = offered.find((each) => each === name);
  if (found === undefined) throw new UserError(`--provider: ${name} is neither ${offered.join(" nor ")}`);
  return found;
}

/** What the provider of machines needs of this host, around the controllers. */
export interface MachineHost {
  /** Where machines find this host. */
  readonly address: string;
  /** Network of its machines, to which others need a route; undefined where nobody else reaches them. */
  readonly network: string | undefined;
  /** What a controller must be told of it. */
  readonly settings: Readonly<Record<string, string>>;
  /** Networks that a new service lets in when its request names none. */
  readonly allowedCidrs: readonly string[];
  /** A process to run for it; undefined when it needs none. */
  readonly daemon: ChildSpec | undefined;
  /** Installs what is missing on the host. Throws a UserError where that cannot be. */
  install(say: (line: string) => void, signal: AbortSignal): Promise<void>;
  /** Makes what machines and controllers find there, once the daemon was started. */
  open(signal: AbortSignal): Promise<void>;
  /** Stops all machines: in order within graceMs, then by force. No controller may run, the daemon must. */
  stopMachines(graceMs: number): Promise<void>;
  /** Takes all of it from the host that is not in the data directory. No machine may run, the daemon must. */
  remove(): Promise<void>;
  /** Removes what the daemon kept, once it has ended. */
  forget(): void;
  /** What was installed for it, belongs to the host and is there still, and how it goes; undefined when nothing is. */
  readonly remains: string | undefined;
}

/** Of controllers whose machines are all on other hosts. */
export function createNoHost(): MachineHost {
  const nothing = async () => undefined;
  return {
    address: "127.0.0.1",
    network: undefined,
    remains: undefined,
    settings: { HOLDFAST_PROVIDER: "none" },
    allowedCidrs: ["127.0.0.0/8"],
    daemon: undefined,
    install: nothing,
    open: nothing,
    stopMachines: nothing,
    remove: nothing,
    forget: () => undefined,
  };
}

/** The process provider needs nothing but the host itself, and that `publicAddresses`, if it is a network, is the host's own. */
export function createProcessHost(directory: string, loopbackBlock: string, publicAddresses: string): MachineHost {
  const nothing = async () => undefined;
  return {
    address: "127.0.0.1",
    network: undefined,
    remains: undefined,
    settings: { HOLDFAST_PROVIDER: "process", HOLDFAST_LOOPBACK_BLOCK: loopbackBlock },
    allowedCidrs: ["127.0.0.0/8"],
    daemon: undefined,
    install: nothing,
    open: () => requireOwn(publicAddresses),
    stopMachines: (graceMs) => stopAllMachines(directory, graceMs),
    remove: () => removeAllDisks(directory),
    forget: () => undefined,
  };
}

/** Throws a UserError when programs of this host could not listen on the network's addresses. */
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
      `--public-addresses: ${address} is no address of this host (${problem}), as those of processes must be`,
    );
}
