import { existsSync, realpathSync } from "node:fs";
import { join, resolve } from "node:path";
import { parseArgs } from "node:util";
import { addressNetworkOf } from "@holdfast/compute/local/address-network.ts";
import { type ProviderName, readProvider } from "./machine-host.ts";
import { UserError } from "./user-error.ts";

export type Flags = Readonly<Record<string, string | undefined>>;

/** Parses flags of these names, each with a value. Throws a UserError with the usage for any other word. */
export function readFlags(args: readonly string[], names: readonly string[], usage: string): Flags {
  const options = Object.fromEntries(names.map((name) => [name, { type: "string" as const }]));
  try {
    return parseArgs({ args: [...args], options }).values;
  } catch (error) {
    throw new UserError(`${error instanceof Error ? error.message : String(error)}\n${usage}`);
  }
}

/**
 * Options of installations and hosts: flags first, then the environment, then `.holdfast` in the checkout. Throws a
 * UserError for a provider that is not offered.
 */
export function readCommonOptions<N extends ProviderName>(
  flags: Flags,
  environment: Flags,
  checkout: string,
  offered: readonly N[],
) {
  const dataDir = resolve(flags["data"] ?? environment["HOLDFAST_DATA"] ?? defaultDirectory(checkout));
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

/** `.holdfast` in the checkout; in an installed release it is a link to the data directory. */
function defaultDirectory(checkout: string): string {
  const path = join(checkout, ".holdfast");
  return existsSync(path) ? realpathSync(path) : path;
}

/**
 * Value of `--public-addresses` or its environment variable: a network, `none`, or undefined. Throws a UserError for
 * anything else.
 */
export function readPublicAddresses(
  flags: Readonly<Record<string, string | undefined>>,
  environment: Readonly<Record<string, string | undefined>>,
): string | undefined {
  const text = flags["public-addresses"] ?? environment["HOLDFAST_PUBLIC_ADDRESSES"];
  if (text === undefined || text === "" || text === "none") return text;
  try {
    return addressNetworkOf(text).text;
  } catch (error) {
    throw new UserError(`--public-addresses: ${(error as Error).message}`);
  }
}
