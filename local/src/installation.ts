import { randomUUID } from "node:crypto";
import { type DataPlaneName, eachDataPlane } from "@holdfast/common/data-planes.ts";
import type { BlockClaims } from "./block-claims.ts";
import { readJson, replaceFileSync } from "./files.ts";
import { isUnrouted } from "./host-routes.ts";
import { addressBlockOf } from "./incus-host.ts";
import type { Layout } from "./layout.ts";
import type { ProviderName } from "./machine-host.ts";
import type { Ports } from "./ports.ts";
import { busyPorts, portsOf } from "./ports.ts";
import { UserError } from "./user-error.ts";

/** Stored description of an installation, written at its first start. */
export interface Installation {
  readonly id: string;
  readonly ports: Ports;
  /** First two octets of its machines' addresses. */
  readonly loopback_block: string;
  /** Compute provider; absent in files of early releases, which had only "process". */
  readonly provider?: ProviderName;
  /** Socket of the Incus daemon; absent if the installation runs its own. */
  readonly incus_socket?: string;
  /** Address or name by which other machines reach it; absent if none does. */
  readonly advertise?: string;
  /** Address of this machine to listen on for other machines; absent if `advertise` resolves to it. */
  readonly listen?: string;
  /** Origin of its DNS zone; absent for `local.holdfast.test`. */
  readonly domain?: string;
  /** Network of its machines' public addresses; absent if they have none. */
  readonly public_addresses?: string;
  /** URL of its object store; absent if that is its own directory. */
  readonly objects?: string;
}

/** Requested changes of an installation at a start; an absent field does not change, or gets its default. */
export interface InstallationRequest {
  /** Ports that the user chose. */
  readonly ports: Partial<Ports>;
  /** Compute provider. */
  readonly provider?: ProviderName;
  /** Socket of an existing Incus daemon. */
  readonly incusSocket?: string;
  /** Address or name by which other machines reach the installation; "localhost" removes it. */
  readonly advertise?: string;
  /** Address of this machine to listen on for them, if it is not the advertised one. */
  readonly listen?: string;
  /** Network of public addresses for its machines, such as `203.0.113.16/28`; `none` removes it. */
  readonly publicAddresses?: string;
  /** Origin of the DNS zone. */
  readonly domain?: string;
  /** URL of an existing object store. */
  readonly objects?: string;
}

/** The installation of the directory, created at the first call. Requested ports replace stored ones. */
export async function openInstallation(
  layout: Layout,
  claims: BlockClaims,
  requested: InstallationRequest,
): Promise<Installation> {
  const existing = readJson<Installation>(layout.installation);
  if (existing !== undefined && existing.ports === undefined)
    throw new UserError(`${layout.root} belongs to a host of another installation; \`npm start -- host\` starts it`);
  const installation =
    existing === undefined
      ? await newInstallation(layout, claims, requested)
      : {
          ...withAdvertised(withPublicAddresses(existing, requested), requested),
          ports: { ...addedPorts(existing), ...existing.ports, ...requested.ports },
          ...(requested.objects && { objects: requested.objects }),
        };
  if (requested.provider !== undefined && requested.provider !== providerOf(installation)) {
    const provider = providerOf(installation);
    const machines = provider === "none" ? "are all on other hosts" : `are of ${provider}`;
    throw new UserError(
      `the machines of ${layout.root} ${machines}; ${requested.provider} needs another --data directory`,
    );
  }
  const domain = domainOf(installation);
  if (requested.domain !== undefined && requested.domain !== domain)
    throw new UserError(
      `--domain: the names of ${layout.root} end with ${domain}; ${requested.domain} needs another --data directory`,
    );
  const { loopback_block: block } = installation;
  if (!claims.renew({ directory: layout.root, block })) {
    throw new UserError(
      `another installation of this host uses the addresses ${block}.*; is ${layout.root} a copy of it?`,
    );
  }
  if (JSON.stringify(installation) !== JSON.stringify(existing)) {
    replaceFileSync(layout.installation, `${JSON.stringify(installation, null, 2)}\n`, 0o644);
  }
  return installation;
}

/** Compute provider; installations of early releases have the process provider. */
export function providerOf({ provider }: Pick<Installation, "provider">): ProviderName {
  return provider ?? "process";
}

/** Origin of the DNS zone; by default a domain that no public resolver has. */
export function domainOf({ domain }: Pick<Installation, "domain">): string {
  return domain ?? "local.holdfast.test";
}

/** Loopback address at which the DNS server listens at port 53 too, for the host's resolver. */
export function resolverAddressOf({ loopback_block: block }: Pick<Installation, "loopback_block">): string {
  return `${block}.0.53`;
}

/** Default ports of data planes that were added after the installation was created. */
function addedPorts({ loopback_block: block }: Installation): Pick<Ports, DataPlaneName> {
  const ports = portsOf(block);
  return eachDataPlane((name) => ports[name]);
}

/** A new advertised address removes the previous listen address. */
function withAdvertised({ advertise, listen, ...rest }: Installation, requested: InstallationRequest): Installation {
  if (requested.advertise === undefined) {
    const listensOn = requested.listen ?? listen;
    return { ...rest, ...(advertise && { advertise }), ...(listensOn && { listen: listensOn }) };
  }
  if (requested.advertise === "localhost") return rest;
  return { ...rest, advertise: requested.advertise, ...(requested.listen && { listen: requested.listen }) };
}

/** Applies the last requested network of public addresses. */
function withPublicAddresses(
  { public_addresses, ...rest }: Installation,
  { publicAddresses }: InstallationRequest,
): Installation {
  return { ...rest, ...nextPublicAddresses({ ...(public_addresses && { public_addresses }) }, publicAddresses) };
}

async function newInstallation(
  layout: Layout,
  claims: BlockClaims,
  requested: InstallationRequest,
): Promise<Installation> {
  const { ports, provider, incusSocket } = requested;
  const block = await claims.claim(layout.root, async (candidate) => {
    // Busy ports that the user chose are reported to the user; other busy ports only exclude the block.
    const busy = await busyPorts(portsOf(candidate));
    if (!busy.every(({ name }) => ports[name] !== undefined)) return false;
    return provider !== "incus" || isUnrouted(addressBlockOf(candidate));
  });
  const created = {
    id: randomUUID(),
    ports: { ...portsOf(block), ...ports },
    loopback_block: block,
    ...(provider && { provider }),
    ...(incusSocket && { incus_socket: incusSocket }),
    ...(requested.domain && { domain: requested.domain }),
    ...(requested.objects && { objects: requested.objects }),
  };
  return withAdvertised(withPublicAddresses(created, requested), requested);
}

/** The network of public addresses to store after a request: the last named network; none after `none`. */
export function nextPublicAddresses(
  before: { readonly public_addresses?: string },
  requested: string | undefined,
): { readonly public_addresses?: string } {
  const chosen = requested ?? before.public_addresses;
  return chosen === undefined || chosen === "none" ? {} : { public_addresses: chosen };
}
