import { isIP } from "node:net";
import { join, resolve } from "node:path";
import { parseArgs } from "node:util";
import type { Wishes } from "./installation.ts";
import { providers, readProvider } from "./machine-host.ts";
import { type PortName, portPlans } from "./ports.ts";
import { readPublicAddresses } from "./public-addresses.ts";
import { UserError } from "./user-error.ts";

/** What the words after `npm start --` ask for. */
export interface Options extends Wishes {
  readonly command: "up" | "clean";
  /** Absolute path of the data directory. */
  readonly dataDir: string;
}

export const usage = [
  "usage: npm start -- [--data DIR] [--provider process|incus|none] [--incus-socket PATH]",
  "                    [--api-port N] [--agents-port N] [--dns-port N] [--etcd-client-port N]",
  "                    [--etcd-peer-port N] [--history-port N] [--public-addresses NETWORK|none]",
  "                    [--advertise ADDRESS|NAME [--listen ADDRESS]] | [--advertise localhost]",
  "       npm run clean -- [--data DIR]",
  "       npm start -- host ...                 makes this machine a host of an installation that runs elsewhere",
  "Each flag is also an environment variable: HOLDFAST_DATA, HOLDFAST_API_PORT, ...",
].join("\n");

/** Flags first, then the environment, then `.holdfast` in the checkout. Throws a UserError for what it does not know. */
export function readOptions(
  args: readonly string[],
  environment: Readonly<Record<string, string | undefined>>,
  checkout: string,
): Options {
  const [command, ...rest] = args;
  if (command !== "up" && command !== "clean") throw new UserError(usage);
  const flags = parse(rest);
  const ports: Partial<Record<PortName, number>> = {};
  for (const [name, { flag }] of Object.entries(portPlans) as [PortName, { flag: string }][]) {
    const value = flags[flag] ?? environment[`HOLDFAST_${flag.replaceAll("-", "_").toUpperCase()}`];
    if (value !== undefined) ports[name] = readPort(flag, value);
  }
  const dataDir = resolve(flags["data"] ?? environment["HOLDFAST_DATA"] ?? join(checkout, ".holdfast"));
  const named = flags["provider"] ?? environment["HOLDFAST_PROVIDER"];
  const provider = named === undefined ? undefined : readProvider(named, providers);
  const incusSocket = flags["incus-socket"] ?? environment["HOLDFAST_INCUS_SOCKET"];
  const advertise = flags["advertise"] ?? environment["HOLDFAST_ADVERTISE"];
  if (advertise !== undefined && !/^([0-9A-Za-z.-]+|[0-9A-Fa-f:]+)$/.test(advertise))
    throw new UserError(`--advertise: ${advertise} is neither an address nor a name; a port has its own flag`);
  const listen = flags["listen"] ?? environment["HOLDFAST_LISTEN"];
  if (listen !== undefined && isIP(listen) === 0) throw new UserError(`--listen: ${listen} is not an address`);
  const publicAddresses = readPublicAddresses(flags, environment);
  return {
    command,
    dataDir,
    ports,
    ...(provider && { provider }),
    ...(incusSocket && { incusSocket }),
    ...(advertise && { advertise }),
    ...(listen && { listen }),
    ...(publicAddresses && { publicAddresses }),
  };
}

function parse(args: readonly string[]): Record<string, string | undefined> {
  const names = [
    "data",
    "provider",
    "incus-socket",
    "advertise",
    "listen",
    "public-addresses",
    ...Object.values(portPlans).map(({ flag }) => flag),
  ];
  const options = Object.fromEntries(names.map((name) => [name, { type: "string" as const }]));
  try {
    return parseArgs({ args: [...args], options }).values;
  } catch (error) {
    throw new UserError(`${error instanceof Error ? error.message : String(error)}\n${usage}`);
  }
}

function readPort(flag: string, value: string): number {
  const port = Number(value);
  if (!Number.isInteger(port) || port < 1 || port > 65_535) throw new UserError(`--${flag}: ${value} is not a port`);
  return port;
}
