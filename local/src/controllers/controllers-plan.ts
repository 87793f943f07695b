import { isIP } from "node:net";
import { isDomain } from "../options.ts";
import { UserError } from "../user-error.ts";

/** An installation with a controller, a member of etcd and a DNS server on each of several hosts. */
export interface ControllersPlan {
  /** Domain of the names of services. */
  readonly domain: string;
  /** Address or name of the host of the history's PostgreSQL. */
  readonly history: string;
  /** URL of the object store. */
  readonly objects: string;
  /** Addresses of the hosts, in the order of their numbers. */
  readonly addresses: readonly string[];
}

/** Arguments of a plan. Those that are missing have the value of the stored plan. */
export interface ControllersArguments extends Partial<Omit<ControllersPlan, "addresses">> {
  readonly addresses: readonly string[];
}

/** The flag of each part of a plan; addresses are arguments. */
const flags = { domain: "--domain", history: "--history", objects: "--objects" } as const;

/**
 * The plan of the arguments. Throws a UserError with the argument that is missing, has another format, or differs from
 * the stored plan, whose hosts exist.
 */
export function readControllersPlan(given: ControllersArguments, stored?: ControllersPlan): ControllersPlan {
  const plan = {
    domain: required("domain", given, stored),
    history: required("history", given, stored),
    objects: required("objects", given, stored),
    addresses: given.addresses.length === 0 && stored !== undefined ? stored.addresses : given.addresses,
  };
  if (stored !== undefined) requireSame(plan, stored);
  const { domain, history, objects, addresses } = plan;
  if (!isDomain(domain))
    throw new UserError(`--domain: ${domain} is not a domain, such as svc.example.com, in lower case`);
  requireAddresses(addresses);
  if (addresses.includes(history))
    throw new UserError(
      `--history: ${history} is the host of a controller; name another host, because the history must not end with it`,
    );
  if (!isHost(history)) throw new UserError(`--history: ${history} is neither an address nor the name of a host`);
  requireObjects(objects);
  return plan;
}

function required(name: keyof typeof flags, given: ControllersArguments, stored?: ControllersPlan): string {
  const value = given[name] ?? stored?.[name];
  if (value === undefined || value === "") throw new UserError(`${flags[name]} is missing; --help describes it`);
  return value;
}

function requireSame(plan: ControllersPlan, stored: ControllersPlan): void {
  for (const [name, flag] of Object.entries(flags) as [keyof typeof flags, string][])
    if (plan[name] !== stored[name])
      throw new UserError(
        `${flag}: the directory is prepared for ${stored[name]}; leave ${flag} out, or name another directory`,
      );
  if (plan.addresses.join() !== stored.addresses.join())
    throw new UserError(
      `the directory is prepared for the hosts ${stored.addresses.join(" ")}; leave the addresses out, or name another directory`,
    );
}

function requireAddresses(addresses: readonly string[]): void {
  const other = addresses.find((each) => isIP(each) === 0);
  if (other !== undefined) throw new UserError(`${other} is not an IP address; name each host by its address`);
  const local = addresses.find((each) => /^(127\.|0\.|::1?$|fe80:)/i.test(each));
  if (local !== undefined)
    throw new UserError(`${local}: other hosts do not reach this address; use the host's address in the network`);
  const twice = addresses.find((each, at) => addresses.indexOf(each) !== at);
  if (twice !== undefined) throw new UserError(`${twice} is named twice; each controller needs a separate host`);
  if (addresses.length !== 3 && addresses.length !== 5)
    throw new UserError(
      `${addresses.length} addresses: name 3 hosts, or 5; etcd continues while more than half of its members run`,
    );
}

const hostName = /^[a-z0-9]([a-z0-9-]*[a-z0-9])?(\.[a-z0-9]([a-z0-9-]*[a-z0-9])?)*$/;

function isHost(text: string): boolean {
  return isIP(text) !== 0 || (text.length <= 253 && hostName.test(text) && !/^[\d.]+$/.test(text));
}

/** Requires a store that all hosts reach: a directory of one host would end with that host. */
function requireObjects(objects: string): void {
  if (objects.startsWith("file:") || objects.startsWith("/"))
    throw new UserError(
      `--objects: ${objects} is a directory of one host; use s3://BUCKET/PREFIX?endpoint=https://HOST`,
    );
  const url = URL.canParse(objects) ? new URL(objects) : undefined;
  if (url?.protocol !== "s3:" || url.hostname === "")
    throw new UserError(`--objects: ${objects} is not s3://BUCKET/PREFIX?endpoint=https://HOST`);
  const endpoint = url.searchParams.get("endpoint") ?? "";
  if (!/^https?:$/.test(URL.canParse(endpoint) ? new URL(endpoint).protocol : ""))
    throw new UserError(`--objects: ${objects} has no endpoint; add ?endpoint=https://HOST`);
}

/** Requires the JSON of an S3 store's credential. Throws a UserError without its content. */
export function requireObjectsKey(text: string, path: string): void {
  let credential: unknown;
  try {
    credential = JSON.parse(text);
  } catch {
    // Refused below.
  }
  const { id, secret } = (credential ?? {}) as { readonly id?: unknown; readonly secret?: unknown };
  if (typeof id !== "string" || id === "" || typeof secret !== "string" || secret === "")
    throw new UserError(`--objects-key: ${path} is not JSON with id and secret: {"id": "...", "secret": "..."}`);
}
