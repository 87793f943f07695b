import { existsSync, rmSync } from "node:fs";
import { join } from "node:path";
import type { JoinFile } from "@holdfast/common/join-file.ts";
import type { BlockClaims } from "./block-claims.ts";
import { readJson, replaceFileSync } from "./files.ts";
import type { HostOptions } from "./host-options.ts";
import { isUnrouted } from "./host-routes.ts";
import { addressBlockOf } from "./incus-host.ts";
import { type Installation, nextPublicAddresses, providerOf } from "./installation.ts";
import type { Layout } from "./layout.ts";
import { UserError } from "./user-error.ts";

/** Stored description of a host, written when it joined. It has the path of an installation's description. */
export interface HostInstallation extends Omit<Installation, "ports"> {
  readonly host: {
    /** Host name that its operator chose. */
    readonly id: string;
    /** Listen address, host:port. */
    readonly listen: string;
  };
}

/** Directory of the host's certificate. */
export function hostIdentityDirectory(layout: Layout): string {
  return join(layout.keys, "host");
}

/** First two octets of the addresses of the host's machines. */
export function machineBlockOf(installation: HostInstallation): string {
  const { loopback_block: block } = installation;
  return providerOf(installation) === "incus" ? addressBlockOf(block) : block;
}

/** The host of the directory, created from the join file at the first call. Throws a UserError with the obstacle. */
export async function openHostInstallation(
  layout: Layout,
  claims: BlockClaims,
  options: HostOptions,
  join: JoinFile | undefined,
): Promise<{ readonly installation: HostInstallation; readonly isNew: boolean }> {
  const existing = readJson<HostInstallation>(layout.installation);
  if (existing !== undefined && existing.host === undefined)
    throw new UserError(
      `${layout.root} is an installation with its own controllers; a host needs another --data directory`,
    );
  const installation = existing ?? (await newHost(layout, claims, options, join));
  requireSameHost(layout, installation, options, join);
  const { loopback_block: block } = installation;
  if (!claims.renew({ directory: layout.root, block }))
    throw new UserError(
      `another installation on this machine uses the addresses ${block}.*; is ${layout.root} a copy?`,
    );
  const updated = withOptions(installation, options);
  if (JSON.stringify(updated) !== JSON.stringify(existing))
    replaceFileSync(layout.installation, `${JSON.stringify(updated, null, 2)}\n`, 0o644);
  return { installation: updated, isNew: existing === undefined };
}

function withOptions(
  { public_addresses, host, ...installation }: HostInstallation,
  { listen = host.listen, publicAddresses }: HostOptions,
): HostInstallation {
  return {
    ...installation,
    ...nextPublicAddresses({ ...(public_addresses && { public_addresses }) }, publicAddresses),
    host: { ...host, listen },
  };
}

/** True once the host has a certificate of its installation. */
export function hasJoined(layout: Layout): boolean {
  return existsSync(join(hostIdentityDirectory(layout), "identity.json"));
}

/** Removes the description of a host that could not join, so that it can join with other options. */
export function deleteHostInstallation(layout: Layout, claims: BlockClaims, installation: HostInstallation): void {
  if (hasJoined(layout)) return;
  rmSync(layout.installation, { force: true });
  claims.release({ directory: layout.root, block: installation.loopback_block });
}

async function newHost(
  layout: Layout,
  claims: BlockClaims,
  options: HostOptions,
  join: JoinFile | undefined,
): Promise<HostInstallation> {
  if (join === undefined)
    throw new UserError(`${layout.root} is not a host yet; \`holdfast admin hosts add\` creates the file for --join`);
  const { provider = "process", incusSocket, addressBlock } = options;
  const isFree = (block: string) => {
    const machines = provider === "incus" ? addressBlockOf(block) : block;
    return !join.taken_blocks.includes(machines) && (provider !== "incus" || isUnrouted(machines));
  };
  const block = addressBlock ?? (await claims.claim(layout.root, async (candidate) => isFree(candidate)));
  return {
    id: join.installation_id,
    loopback_block: block,
    provider,
    ...(incusSocket && { incus_socket: incusSocket }),
    host: { id: join.host_id, listen: options.listen ?? join.address },
  };
}

function requireSameHost(
  { root }: Layout,
  installation: HostInstallation,
  { provider, addressBlock }: HostOptions,
  join: JoinFile | undefined,
): void {
  const { id, host, loopback_block: block } = installation;
  if (join !== undefined && (join.installation_id !== id || join.host_id !== host.id))
    throw new UserError(
      `${root} belongs to host ${host.id} of installation ${id}; use another --data directory for another host`,
    );
  const existing = providerOf(installation);
  if (provider !== undefined && provider !== existing)
    throw new UserError(
      `the machines of ${root} are of provider ${existing}; use another --data directory for ${provider}`,
    );
  if (addressBlock !== undefined && addressBlock !== block)
    throw new UserError(
      `the machines of ${root} have the addresses ${block}.*; use another --data directory for others`,
    );
}
