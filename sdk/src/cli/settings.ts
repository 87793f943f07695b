import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type { Credentials } from "../transport.ts";
import { UsageError } from "./exit-code.ts";

/** Which installation, and who asks. */
export interface Settings {
  readonly baseUrl: string;
  /** PEM file of the authorities to trust, beside those of Node. */
  readonly caFile: string | undefined;
  /** For services. */
  readonly credentials: Credentials;
  /** For holdfast.admin.v1: the operator of admin.json, else the same. */
  readonly operator: Credentials;
  /** Where the local installation keeps its data, if there is one. */
  readonly dataDirectory: string | undefined;
  /** Id of the organization to act in. */
  readonly organization: string | undefined;
}

export interface Flags {
  readonly baseUrl?: string;
  readonly caFile?: string;
  readonly data?: string;
  readonly organization?: string;
}

type Environment = Readonly<Record<string, string | undefined>>;

interface AdminFile {
  readonly base_url: string;
  readonly ca_file: string;
  readonly username: string;
  readonly password: string;
  readonly api_key_id: string;
  readonly api_key_secret: string;
}

/** Flags over environment over the installation's admin.json. Throws UsageError when something is missing. */
export function readSettings(flags: Flags, environment: Environment, defaultDirectory: string): Settings {
  const directory = flags.data ?? environment.HOLDFAST_DATA ?? defaultDirectory;
  const admin = readAdminFile(join(directory, "admin.json"));
  const baseUrl = flags.baseUrl ?? environment.HOLDFAST_BASE_URL ?? admin?.base_url;
  if (baseUrl === undefined) {
    throw new UsageError(`there is no installation in ${directory}: run npm start first, or set HOLDFAST_BASE_URL`);
  }
  const given = credentialsOf(environment);
  // A secret of this host is not for another host.
  const own = admin?.base_url === baseUrl ? admin : undefined;
  const organization = flags.organization ?? (environment.HOLDFAST_ORGANIZATION || undefined);
  const person = own && basic(own.username, own.password);
  // The key of admin.json is of the first organization; who names one is a person of several.
  const credentials = given ?? (organization === undefined ? own && basic(own.api_key_id, own.api_key_secret) : person);
  const operator = given ?? person;
  if (credentials === undefined || operator === undefined) {
    throw new UsageError("no credential: set HOLDFAST_API_KEY_ID and HOLDFAST_API_KEY_SECRET, or HOLDFAST_TOKEN");
  }
  const caFile = flags.caFile ?? environment.HOLDFAST_CA_FILE ?? own?.ca_file;
  return {
    baseUrl: baseUrl.replace(/\/+$/, ""),
    caFile,
    credentials,
    operator,
    dataDirectory: own === undefined ? undefined : directory,
    organization,
  };
}

function credentialsOf(environment: Environment): Credentials | undefined {
  const { HOLDFAST_TOKEN: token, HOLDFAST_API_KEY_ID: id, HOLDFAST_API_KEY_SECRET: secret } = environment;
  if (token !== undefined && token !== "") return { kind: "bearer", token };
  if (id === undefined || id === "") return undefined;
  if (secret === undefined || secret === "")
    throw new UsageError("HOLDFAST_API_KEY_ID is set without HOLDFAST_API_KEY_SECRET");
  return basic(id, secret);
}

function basic(name: string, secret: string): Credentials {
  return { kind: "basic", name, secret };
}

function readAdminFile(path: string): AdminFile | undefined {
  return existsSync(path) ? (JSON.parse(readFileSync(path, "utf8")) as AdminFile) : undefined;
}
