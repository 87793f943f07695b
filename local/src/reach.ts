import { lookup } from "node:dns/promises";
import { isIP } from "node:net";
import { networkInterfaces } from "node:os";
import type { Installation } from "./installation.ts";
import { UserError } from "./user-error.ts";

/** How other machines reach an installation. */
export interface Reach {
  /** Address or name, for clients. */
  readonly advertise: string;
  /** Address of this machine that its API, its controller and its DNS server listen on for them. */
  readonly listen: string;
  /** Address for machines, in which nobody looks up names of the operator's network. */
  readonly address: string;
}

export interface ReachDeps {
  /** Addresses that a name leads to; rejects when it leads nowhere. */
  readonly resolve: (name: string) => Promise<readonly string[]>;
  readonly isOwn: (address: string) => boolean;
}

const host: ReachDeps = {
  resolve: async (name) => (await lookup(name, { all: true })).map(({ address }) => address),
  isOwn: isOwnAddress,
};

/** Undefined when other machines are not to reach it. Throws a UserError for what leads to no address of this machine. */
export async function reachOf(
  { advertise, listen }: Pick<Installation, "advertise" | "listen">,
  { resolve, isOwn }: ReachDeps = host,
): Promise<Reach | undefined> {
  if (advertise === undefined) {
    if (listen !== undefined) throw new UserError("--listen: it is for others, who need --advertise ADDRESS as well");
    return undefined;
  }
  if (listen !== undefined && !isOwn(listen)) throw new UserError(`--listen: ${listen} is no address of this machine`);
  const isAddress = isIP(advertise) !== 0;
  const found = listen ?? (isAddress ? [advertise] : await resolved(advertise, resolve)).find(isOwn);
  if (found === undefined) {
    const what = isAddress ? "is no address of this machine" : "leads to no address of this machine";
    throw new UserError(
      `--advertise: ${advertise} ${what}; where others reach one of its addresses by it all the same, name that with --listen`,
    );
  }
  return { advertise, listen: found, address: isAddress ? advertise : found };
}

async function resolved(name: string, resolve: ReachDeps["resolve"]): Promise<readonly string[]> {
  try {
    return await resolve(name);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    throw new UserError(`--advertise: ${name} leads to no address (${code}); name one of this machine with --listen`);
  }
}

/** All of 127.0.0.0/8 is this machine's, whichever of it its interfaces name. */
function isOwnAddress(address: string): boolean {
  if (address.startsWith("127.")) return true;
  return Object.values(networkInterfaces()).some((each) => each?.some((known) => known.address === address));
}
