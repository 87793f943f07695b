import { randomUUID } from "node:crypto";
import { type DataPlaneName, eachDataPlane } from "@holdfast/common/data-planes.ts";
import type { BlockRegistry } from "./block-registry.ts";
import { readJson, writeAtomically } from "./files.ts";
import { isUnrouted } from "./host-routes.ts";
import { addressBlockOf } from "./incus-host.ts";
import type { Layout } from "./layout.ts";
import type { ProviderName } from "./machine-host.ts";
import type { Ports } from "./ports.ts";
import { busyPorts, portsOf } from "./ports.ts";
import { keptPublicAddresses } from "./public-addresses.ts";
import { UserError } from "./user-error.ts";

/** What an installation is, chosen at its first start and kept. */
export interface Installation {
  readonly id: string;
  readonly ports: Ports;
  /** First two octets of its machines' addresses. */
  readonly loopback_block: string;
  /** Where its machines come from; absent in files of the time when there was only "process". */
  readonly provider?: ProviderName;
  /** Socket of the Incus daemon that it uses; absent when it runs one of its own. */
  readonly incus_socket?: string;
  /** Address or name by which other machines reach it; absent when none is to. */
  readonly advertise?: string;
  /** Address of this machine to listen on for them; absent when it is what `advertise` leads to. */
  readonly listen?: string;
  /** Network of its machines' public addresses; absent when they have none. */
  readonly public_addresses?: string;
  /** URL of its object store; absent when that is a directory of its own. */
  readonly objects?: string;
}

/** What the user asks of an installation at a start; what is absent stays, or gets its default. */
export interface Wishes {
  /** Ports that the user named. */
  readonly ports: Partial<Ports>;
  /** Where machines come from. */
  readonly provider?: ProviderName;
  /** Socket of an Incus daemon that is there already. */
  readonly incusSocket?: string;
  /** Address or name by which other machines reach the installation; "localhost" takes that back. */
  readonly advertise?: string;
  /** Address of this machine to listen on for them, where it is not the advertised one. */
  readonly listen?: string;
  /** Network of public addresses for its machines, such as `203.0.113.16/28`; `none` for none any more. */
  readonly publicAddresses?: string;
  /** URL of an object store that there is already. */
  readonly objects?: string;
}

/** The installation of the directory, made at the first call. Wished ports replace those that were kept. */
export async function openInstallation(layout: Layout, registry: BlockRegistry, wished: Wishes): Promise<Installation> {
  const existing = readJson<Installation>(layout.installation);
  if (existing !== undefined && existing.ports === undefined)
    throw new UserError(`${layout.root} is of a host of another installation; \`npm start -- host\` starts it`);
  const installation =
    existing === undefined
      ? await newInstallation(layout, registry, wished)
      : {
          ...reachedAs(addressed(existing, wished), wished),
          ports: { ...laterPorts(existing), ...existing.ports, ...wished.ports },
          ...(wished.objects && { objects: wished.objects }),
        };
  if (wished.provider !== undefined && wished.provider !== providerOf(installation)) {
    const own = providerOf(installation);
    const machines = own === "none" ? "are all on other hosts" : `are of ${own}`;
    throw new UserError(
      `the machines of ${layout.root} ${machines}; ${wished.provider} needs another --data directory`,
    );
  }
  const { loopback_block: block } = installation;
  if (!registry.keep({ directory: layout.root, block })) {
    throw new UserError(
      `another installation of this host uses the addresses ${block}.*; is ${layout.root} a copy of it?`,
    );
  }
  if (JSON.stringify(installation) !== JSON.stringify(existing)) {
    writeAtomically(layout.installation, `${JSON.stringify(installation, null, 2)}\n`, 0o644);
  }
  return installation;
}

/** Installations that were made before there was a choice have processes. */
export function providerOf({ provider }: Pick<Installation, "provider">): ProviderName {
  return provider ?? "process";
}

/** Of data planes that came after installations that are there already. */
function laterPorts({ loopback_block: block }: Installation): Pick<Ports, DataPlaneName> {
  const ports = portsOf(block);
  return eachDataPlane((name) => ports[name]);
}

/** A newly advertised address ends what was listened on for the one before. */
function reachedAs({ advertise, listen, ...rest }: Installation, wished: Wishes): Installation {
  if (wished.advertise === undefined) {
    const listensOn = wished.listen ?? listen;
    return { ...rest, ...(advertise && { advertise }), ...(listensOn && { listen: listensOn }) };
  }
  if (wished.advertise === "localhost") return rest;
  return { ...rest, advertise: wished.advertise, ...(wished.listen && { listen: wished.listen }) };
}

/** With the network of public addresses that it was given last. */
function addressed({ public_addresses, ...rest }: Installation, { publicAddresses }: Wishes): Installation {
  return { ...rest, ...keptPublicAddresses({ ...(public_addresses && { public_addresses }) }, publicAddresses) };
}

async function newInstallation(layout: Layout, registry: BlockRegistry, wished: Wishes): Promise<Installation> {
  const { ports, provider, incusSocket } = wished;
  const block = await registry.claim(layout.root, async (candidate) => {
    // Busy ports of the user's own choice are the user's to hear about; others only rule the block out.
    const busy = await busyPorts(portsOf(candidate));
    if (!busy.every(({ name }) => ports[name] !== undefined)) return false;
    return provider !== "incus" || isUnrouted(addressBlockOf(candidate));
  });
  const made = {
    id: randomUUID(),
    ports: { ...portsOf(block), ...ports },
    loopback_block: block,
    ...(provider && { provider }),
    ...(incusSocket && { incus_socket: incusSocket }),
    ...(wished.objects && { objects: wished.objects }),
  };
  return reachedAs(addressed(made, wished), wished);
}
