import { resolve } from "node:path";
import { endpointOf } from "@holdfast/common/endpoint.ts";
import { readCommonOptions, readFlags } from "./flags.ts";
import { type HostProviderName, hostProviders } from "./machine-host.ts";
import { UserError } from "./user-error.ts";

/** Options of a host whose installation has its controllers elsewhere. */
export interface HostOptions {
  /** Absolute path of the data directory. */
  readonly dataDir: string;
  /** Path of the join file; absent once the host has joined. */
  readonly joinFile?: string;
  /** Path of a join file that is not read once the host has joined, so that a service can name it at each start. */
  readonly firstJoinFile?: string;
  readonly provider?: HostProviderName;
  /** Socket of an existing Incus daemon. */
  readonly incusSocket?: string;
  /** Listen address, host:port; the address in the join file if absent. */
  readonly listen?: string;
  /** First two numbers of the loopback addresses; a free block if absent. */
  readonly addressBlock?: string;
  /** Network of public addresses for its machines, such as `203.0.113.16/28`; `none` removes it. */
  readonly publicAddresses?: string;
}

export const hostUsage = [
  "usage: npm start -- host --join FILE [--data DIR] [--provider process|incus] [--incus-socket PATH]",
  "                         [--listen HOST:PORT] [--address-block 127.N] [--public-addresses NETWORK|none]",
  "       npm start -- host [--data DIR] [--public-addresses NETWORK|none]        once it has joined",
  "       npm run clean -- [--data DIR] [--yes]",
  "",
  "  --join FILE                    join file of the installation for this machine; valid once, for ten minutes",
  "  --listen HOST:PORT             listen address, if it differs from the one in the file",
  "  --address-block 127.N          loopback block, unique among the installations of this machine",
  "  `npm start -- --help` describes --provider, --incus-socket, --public-addresses and --data.",
  "",
  "`holdfast admin hosts add` creates the file. Each flag is also an environment variable: HOLDFAST_DATA, ...; the file",
  "that HOLDFAST_JOIN names is read until the host has joined.",
].join("\n");

/** Flags of `npm start -- host`; each is also an environment variable. */
export const hostFlagNames: readonly string[] = [
  "data",
  "join",
  "provider",
  "incus-socket",
  "listen",
  "address-block",
  "public-addresses",
];

/** Flags first, then the environment, then `.holdfast` in the checkout. Throws a UserError for unknown flags. */
export function readHostOptions(
  args: readonly string[],
  environment: Readonly<Record<string, string | undefined>>,
  checkout: string,
): HostOptions {
  const flags = readFlags(args, hostFlagNames, hostUsage);
  const common = readCommonOptions(flags, environment, checkout, hostProviders);
  const { join: joinFile } = flags;
  const firstJoinFile = environment["HOLDFAST_JOIN"];
  const listen = flags["listen"] ?? environment["HOLDFAST_LISTEN"];
  const addressBlock = flags["address-block"] ?? environment["HOLDFAST_ADDRESS_BLOCK"];
  if (listen !== undefined && !isEndpoint(listen)) throw new UserError(`--listen: ${listen} is not HOST:PORT`);
  if (addressBlock !== undefined && !/^127\.([1-9]\d?|1\d\d|2[0-4]\d|25[0-4])$/.test(addressBlock))
    throw new UserError(`--address-block: ${addressBlock} is not 127.N`);
  return {
    ...common,
    ...(joinFile && { joinFile: resolve(joinFile) }),
    ...(firstJoinFile && { firstJoinFile: resolve(firstJoinFile) }),
    ...(listen && { listen }),
    ...(addressBlock && { addressBlock }),
  };
}

function isEndpoint(text: string): boolean {
  try {
    endpointOf(text);
    return true;
  } catch {
    return false;
  }
}
