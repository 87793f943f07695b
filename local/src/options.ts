import { lookUp } from "@holdfast/common/look-up.ts";
import { isIP } from "node:net";
import { objectsUrlOf } from "./chosen-objects.ts";
import { readCommonOptions, readFlags } from "./flags.ts";
import type { Wishes } from "./installation.ts";
import { providers } from "./machine-host.ts";
import { type PortName, portPlans } from "./ports.ts";
import { UserError } from "./user-error.ts";

/** What the words after `npm start --` ask for. */
export interface Options extends Wishes {
  readonly command: "up" | "clean";
  /** Absolute path of the data directory. */
  readonly dataDir: string;
  /** File with the credential of an S3 store. */
  readonly objectsKey?: string;
}

export const usage = [
  "usage: npm start -- [FLAGS]                       runs the platform; Ctrl-C stops it and keeps everything",
  "       npm run clean -- [--data DIR] [--incus-socket PATH]",
  "                                                  stops it and takes all of it away, data too",
  "       npm start -- host --help                   makes this machine a host of an installation that runs elsewhere",
  "",
  "  --data DIR                     where it keeps what it has (.holdfast in the checkout)",
  "  --provider process|incus|none  where machines come from: processes of this host, Incus, or other hosts alone;",
  "                                 chosen at the first start (process)",
  "  --incus-socket PATH            the daemon of Incus to use, instead of one of its own",
  "  --public-addresses NETWORK|none  a network of which each new machine gets an address, such as 203.0.113.16/28",
  "  --advertise ADDRESS|NAME       how other machines reach it; localhost takes that back",
  "  --listen ADDRESS               its own address for them, where --advertise is another one",
  "  --objects URL                  where its payloads and backups are, chosen at the first start: file:///DIR, or",
  "                                 s3://BUCKET/PREFIX?endpoint=https://HOST (a directory of its own)",
  "  --objects-key FILE             credential of an S3 store, JSON with id and secret",
  "  --api-port N, --agents-port N, --dns-port N, --store-port N, --inference-port N, --issuer-port N, --etcd-client-port N, --etcd-peer-port N, --history-port N",
  "                                 instead of ports from 8443 on, or as many further as this host has installations",
  "",
  "Each flag is also an environment variable: HOLDFAST_DATA, HOLDFAST_API_PORT, ...",
].join("\n");

const flagNames = [
  "data",
  "provider",
  "incus-socket",
  "advertise",
  "listen",
  "public-addresses",
  "objects",
  "objects-key",
  ...Object.values(portPlans).map(({ flag }) => flag),
];

/** Flags first, then the environment, then `.holdfast` in the checkout. Throws a UserError for what it does not know. */
export function readOptions(
  args: readonly string[],
  environment: Readonly<Record<string, string | undefined>>,
  checkout: string,
): Options {
  const [command, ...rest] = args;
  if (command !== "up" && command !== "clean") throw new UserError(usage);
  const flags = readFlags(rest, flagNames, usage);
  const ports: Partial<Record<PortName, number>> = {};
  for (const [name, { flag }] of Object.entries(portPlans) as [PortName, { flag: string }][]) {
    const value = flags[flag] ?? lookUp(environment, `HOLDFAST_${flag.replaceAll("-", "_").toUpperCase()}`);
    if (value !== undefined) ports[name] = readPort(flag, value);
  }
  const common = readCommonOptions(flags, environment, checkout, providers);
  const advertise = flags["advertise"] ?? environment["HOLDFAST_ADVERTISE"];
  if (advertise !== undefined && !/^([0-9A-Za-z.-]+|[0-9A-Fa-f:]+)$/.test(advertise))
    throw new UserError(`--advertise: ${advertise} is neither an address nor a name; a port has its own flag`);
  const listen = flags["listen"] ?? environment["HOLDFAST_LISTEN"];
  if (listen !== undefined && isIP(listen) === 0) throw new UserError(`--listen: ${listen} is not an address`);
  const objects = flags["objects"] ?? environment["HOLDFAST_OBJECTS"];
  const objectsKey = flags["objects-key"] ?? environment["HOLDFAST_OBJECTS_KEY"];
  return {
    ...common,
    command,
    ports,
    ...(objects && { objects: objectsUrlOf(objects) }),
    ...(objectsKey && { objectsKey }),
    ...(advertise && { advertise }),
    ...(listen && { listen }),
  };
}

function readPort(flag: string, value: string): number {
  const port = Number(value);
  if (!Number.isInteger(port) || port < 1 || port > 65_535) throw new UserError(`--${flag}: ${value} is not a port`);
  return port;
}
