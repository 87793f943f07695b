import { lookup } from "node:dns/promises";
import { isIP } from "node:net";
import { networkInterfaces } from "node:os";
import type { Installation } from "./installation.ts";
import { UserError } from "./user-error.ts";

/** Addresses by which other machines reach an installation. */
export interface AdvertisedListener {
  /** Address or name for clients. */
  readonly advertise: string;
  /** Address of this machine that API, controller and DNS server listen on for them. */
  readonly listen: string;
  /** Address for machines, which cannot resolve names of the operator's network. */
  readonly address: string;
}

export interface AdvertisedListenerDeps {
  /** Resolves a name to addresses; rejects if it has none. */
  readonly resolve: (name: string) => Promise<readonly string[]>;
  readonly isOwn: (address: string) => boolean;
}

const host: AdvertisedListenerDeps = {
  resolve: async (name) => (await lookup(name, { all: true })).map(({ address }) => address),
  isOwn: isOwnAddress,
};

/**
 * Resolves the options; undefined if other machines are not to reach the installation. Throws a UserError if the name
 * or address does not belong to this machine.
 */
export async function advertisedListenerOf(
  { advertise, listen }: Pick<Installation, "advertise" | "listen">,
  { resolve, isOwn }: AdvertisedListenerDeps = host,
): Promise<AdvertisedListener | undefined> {
  if (advertise === undefined) {
    if (listen !== undefined) throw new UserError("--listen: other machines need --advertise ADDRESS as well");
    return undefined;
  }
  if (listen !== undefined && !isOwn(listen))
    throw new UserError(`--listen: ${listen} is not an address of this machine`);
  const isAddress = isIP(advertise) !== 0;
  const found = listen ?? (isAddress ? [advertise] : await resolved(advertise, resolve)).find(isOwn);
  if (found === undefined) {
    const what = isAddress ? "is not an address of this machine" : "does not resolve to an address of this machine";
    throw new UserError(
      `--advertise: ${advertise} ${what}; if other machines reach this one by it, give the address of this machine by --listen`,
    );
  }
  return { advertise, listen: found, address: isAddress ? advertise : found };
}

async function resolved(name: string, resolve: AdvertisedListenerDeps["resolve"]): Promise<readonly string[]> {
  try {
    return await resolve(name);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    throw new UserError(
      `--advertise: ${name} cannot be resolved (${code}); give an address of this machine by --listen`,
    );
  }
}

/** True for an address of an interface. All of 127.0.0.0/8 belongs to this machine, although no interface lists it. */
export function isOwnAddress(address: string): boolean {
  if (address.startsWith("127.")) return true;
  return Object.values(networkInterfaces()).some((each) => each?.some((own) => own.address === address));
}
