import { isIP } from "node:net";
import { lookUp } from "@holdfast/common/look-up.ts";
import { readCommonOptions, readFlags } from "./flags.ts";
import type { InstallationRequest } from "./installation.ts";
import { variableOf } from "./installed/settings-file.ts";
import { providers } from "./machine-host.ts";
import { objectsUrlOf } from "./object-store.ts";
import { type PortName, portPlans } from "./ports.ts";
import { UserError } from "./user-error.ts";

/** Parsed arguments of `npm start --`. */
export interface Options extends InstallationRequest {
  readonly command: "up" | "clean";
  /** Absolute path of the data directory. */
  readonly dataDir: string;
  /** File with the credential of an S3 store. */
  readonly objectsKey?: string;
  /** `--yes` of `clean`, which then does not ask. */
  readonly isConfirmed?: true;
}

export const usage = [
  "usage: npm start -- [FLAGS]                       runs the platform; Ctrl-C stops it and retains all data",
  "       npm run clean -- [--data DIR] [--incus-socket PATH] [--yes]",
  "                                                  asks, stops it and removes it with all data; --yes: does not ask",
  "       npm start -- host --help                   makes this machine a host of another machine's installation",
  "",
  "  --data DIR                     data directory (.holdfast in the checkout)",
  "  --provider process|incus|none  compute provider: processes of this host, Incus, or other hosts only;",
  "                                 chosen at the first start (process)",
  "  --incus-socket PATH            socket of an existing Incus daemon, instead of the installation's",
  "  --public-addresses NETWORK|none  a network of public addresses for new machines, such as 203.0.113.16/28",
  "  --advertise ADDRESS|NAME       address for other machines; localhost removes it",
  "  --listen ADDRESS               listen address for other machines, if it differs from --advertise",
  "  --domain DOMAIN                domain of the names of services, chosen at the first start (local.holdfast.test)",
  "  --objects URL                  object store of payloads and backups, chosen at the first start: file:///DIR, or",
  "                                 s3://BUCKET/PREFIX?endpoint=https://HOST (a directory of the installation)",
  "  --objects-key FILE             credential of an S3 store, JSON with id and secret",
  "  --api-port N, --agents-port N, --dns-port N, --store-port N, --inference-port N, --issuer-port N,",
  "  --registry-port N, --ingress-port N, --etcd-client-port N, --etcd-peer-port N, --history-port N",
  "                                 instead of ports from 8443 on, which shift with each installation of this host",
  "",
  "Each flag is also an environment variable: HOLDFAST_DATA, HOLDFAST_API_PORT, ...",
].join("\n");

/** Flags of `npm start --`; each is also an environment variable. */
export const flagNames: readonly string[] = [
  "data",
  "provider",
  "incus-socket",
  "advertise",
  "listen",
  "domain",
  "public-addresses",
  "objects",
  "objects-key",
  ...Object.values(portPlans).map(({ flag }) => flag),
];

/** Flags first, then the environment, then `.holdfast` in the checkout. Throws a UserError for unknown flags. */
export function readOptions(
  args: readonly string[],
  environment: Readonly<Record<string, string | undefined>>,
  checkout: string,
): Options {
  const [command, ...words] = args;
  if (command !== "up" && command !== "clean") throw new UserError(usage);
  const rest = command === "clean" ? words.filter((word) => word !== "--yes") : words;
  const flags = readFlags(rest, flagNames, usage);
  const ports: Partial<Record<PortName, number>> = {};
  for (const [name, { flag }] of Object.entries(portPlans) as [PortName, { flag: string }][]) {
    const value = lookUp(flags, flag) ?? lookUp(environment, variableOf(flag));
    if (value !== undefined) ports[name] = readPort(flag, value);
  }
  const common = readCommonOptions(flags, environment, checkout, providers);
  const advertise = flags["advertise"] ?? environment["HOLDFAST_ADVERTISE"];
  if (advertise !== undefined && !/^([0-9A-Za-z.-]+|[0-9A-Fa-f:]+)$/.test(advertise))
    throw new UserError(`--advertise: ${advertise} is neither an address nor a name; a port has its own flag`);
  const listen = flags["listen"] ?? environment["HOLDFAST_LISTEN"];
  if (listen !== undefined && isIP(listen) === 0) throw new UserError(`--listen: ${listen} is not an address`);
  const domain = flags["domain"] ?? environment["HOLDFAST_DOMAIN"];
  if (domain && !isDomain(domain))
    throw new UserError(`--domain: ${domain} is not a domain, such as db.example.com, in lower case`);
  const objects = flags["objects"] ?? environment["HOLDFAST_OBJECTS"];
  const objectsKey = flags["objects-key"] ?? environment["HOLDFAST_OBJECTS_KEY"];
  return {
    ...common,
    command,
    ports,
    ...(rest.length < words.length && { isConfirmed: true as const }),
    ...(domain && { domain }),
    ...(objects && { objects: objectsUrlOf(objects) }),
    ...(objectsKey && { objectsKey }),
    ...(advertise && { advertise }),
    ...(listen && { listen }),
  };
}

/** True for two or more labels of a host name, which leave space for the names below them. */
export function isDomain(text: string): boolean {
  const label = /^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$/;
  const labels = text.split(".");
  return text.length <= 120 && labels.length >= 2 && isIP(text) === 0 && labels.every((each) => label.test(each));
}

function readPort(flag: string, value: string): number {
  const port = Number(value);
  if (!Number.isInteger(port) || port < 1 || port > 65_535) throw new UserError(`--${flag}: ${value} is not a port`);
  return port;
}
