import { join, resolve } from "node:path";
import { parseArgs } from "node:util";
import { type ProviderName, readProvider } from "./machine-host.ts";
import { readPublicAddresses } from "./public-addresses.ts";
import { UserError } from "./user-error.ts";

export type Flags = Readonly<Record<string, string | undefined>>;

/** The flags of these names, each with a value. Throws a UserError with the usage for any other word. */
export function readFlags(args: readonly string[], names: readonly string[], usage: string): Flags {
  const options = Object.fromEntries(names.map((name) => [name, { type: "string" as const }]));
  try {
    return parseArgs({ args: [...args], options }).values;
  } catch (error) {
    throw new UserError(`${error instanceof Error ? error.message : String(error)}\n${usage}`);
  }
}

/**
 * What every installation is asked for: flags first, then the environment, then `.holdfast` in the checkout. Throws a
 * UserError for a provider that is not offered.
 */
export function readCommonOptions<N extends ProviderName>(
  flags: Flags,
  environment: Flags,
  checkout: string,
  offered: readonly N[],
) {
  const dataDir = resolve(flags["data"] ?? environment["HOLDFAST_DATA"] ?? join(checkout, ".holdfast"));
  const named = flags["provider"] ?? environment["HOLDFAST_PROVIDER"];
  const provider = named === undefined ? undefined : readProvider(named, offered);
  const incusSocket = flags["incus-socket"] ?? environment["HOLDFAST_INCUS_SOCKET"];
  const publicAddresses = readPublicAddresses(flags, environment);
  return {
    dataDir,
    ...(provider && { provider }),
    ...(incusSocket && { incusSocket }),
    ...(publicAddresses && { publicAddresses }),
  };
}
