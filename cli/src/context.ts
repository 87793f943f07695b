import type { ManagedService } from "@holdfast/sdk/responses.ts";
import { type Client, createClient } from "@holdfast/sdk/client.ts";
import { parseExactly } from "@holdfast/sdk/exact-json.ts";
import { transportOptionsOf } from "@holdfast/sdk/node/node-client.ts";
import { readProfiles } from "@holdfast/sdk/node/profiles.ts";
import { findSettings, type FoundSettings } from "@holdfast/sdk/node/settings.ts";
import type { Credentials } from "@holdfast/sdk/transport.ts";
import { NotSignedIn, UsageError } from "./exit-code.ts";
import { isId, monitoredOf, notFound } from "./lookup.ts";
import { createOutput, type Format, type Output, type Screen } from "./output.ts";
import { printableLines } from "./printable.ts";
import { createProgress, type Progress } from "./progress.ts";
import type { Terminal } from "./terminal.ts";

/** Dependencies of the command line. */
export interface CliDeps {
  readonly environment: Readonly<Record<string, string | undefined>>;
  /** Data directory of the local installation that is used by default. */
  readonly defaultDirectory: string;
  /** Aborts at Ctrl-C and signals; the reason is an Interrupted. */
  readonly signal: AbortSignal;
  readonly stdout: Screen;
  readonly stderr: Screen;
  readonly terminal: Terminal;
}

/** Time for which requests are retried after the command's first response, for example during a restart of the API. */
const outageMs = 60_000;

/** Global flags. */
export interface GlobalFlags {
  readonly output: Format;
  readonly profile?: string;
  readonly baseUrl?: string;
  readonly caFile?: string;
  readonly organization?: string;
  readonly data?: string;
}

/** The context of one run of a command. Settings and clients are created at their first use. */
export interface Context {
  readonly flags: GlobalFlags;
  readonly environment: CliDeps["environment"];
  readonly signal: AbortSignal;
  readonly terminal: Terminal;
  readonly output: Output;
  /** Writes a message to standard error. */
  note(text: string): void;
  /** Settings of the installation. Throws SettingsError if no installation is named. */
  readonly settings: FoundSettings;
  /** Data directory of the local installation, which may not exist. */
  readonly dataDirectory: string;
  readonly client: Client;
  /**
   * A client with a user's password, for calls that refuse API keys and tokens. Asks for the password if it is not
   * stored.
   */
  passwordClient(): Promise<Client>;
  /**
   * A client with the user's credentials of the local installation, which have more scopes than its API key; otherwise
   * the same as `client`.
   */
  readonly userClient: Client;
  /** A client of this installation with other credentials. */
  clientOf(credentials: Credentials | undefined, organization?: string): Client;
  /** A service by name or id. Throws NotFound. */
  service(nameOrId: string): Promise<ManagedService>;
  /** The id of a service by name. An id is returned unchanged, because the service may be deleted. */
  serviceId(nameOrId: string): Promise<string>;
  /** The id of a service of any family by name, like `serviceId`. */
  monitoredId(nameOrId: string): Promise<string>;
  progress(name: string): Progress;
  /** The command that started this program, for examples in messages. */
  readonly program: string;
  /** Throws UsageError unless `yes` is true or the user agrees. */
  confirm(question: string, yes: boolean | undefined): Promise<void>;
}

export interface ContextOptions {
  /** True if the named profile may be absent, because the command creates it. */
  readonly createsProfile?: boolean;
}

/** Opens a context; files and network are used only when needed. */
export async function openContext(
  flags: GlobalFlags,
  deps: CliDeps,
  { createsProfile = false }: ContextOptions = {},
): Promise<Context> {
  const { environment, signal, stdout, stderr, terminal } = deps;
  const output = await createOutput(flags.output, stdout, environment);
  let settings: FoundSettings | undefined;
  let client: Client | undefined;

  const context: Context = {
    flags,
    environment,
    signal,
    terminal,
    output,
    program: environment.HOLDFAST_PROGRAM ?? "holdfast",
    note: (text) => {
      stderr.write(`${printableLines(text)}\n`);
    },
    get settings() {
      settings ??= openSettings(flags, deps, createsProfile);
      return settings;
    },
    dataDirectory: flags.data ?? (environment.HOLDFAST_DATA || deps.defaultDirectory),
    get client() {
      client ??= context.clientOf(signedIn(context.settings.credentials), context.settings.organization);
      return client;
    },
    get userClient() {
      return context.clientOf(signedIn(context.settings.userCredentials), context.settings.organization);
    },
    clientOf(credentials, organization) {
      const { caFile, baseUrl, dataDirectory } = context.settings;
      const options = transportOptionsOf({ baseUrl, caFile, dataDirectory, organization, credentials });
      return createClient({ ...options, signal, outageMs, parse: parseExactly });
    },
    async passwordClient() {
      const { userCredentials, username, organization } = context.settings;
      if (userCredentials?.kind === "basic" || username === undefined) return context.userClient;
      const secret = await terminal.askSecret(`Password of ${username}`);
      return context.clientOf({ kind: "basic", name: username, secret }, organization);
    },
    progress: (name) => createProgress(stderr, name),
    async service(nameOrId) {
      if (isId(nameOrId)) return context.client.services.get(nameOrId, { signal });
      for await (const service of context.client.services.list({ name: nameOrId }, { signal })) return service;
      throw notFound("service", nameOrId);
    },
    serviceId: async (nameOrId) => (isId(nameOrId) ? nameOrId : (await context.service(nameOrId)).id),
    monitoredId: async (nameOrId) => (isId(nameOrId) ? nameOrId : (await monitoredOf(context, nameOrId)).id),
    async confirm(question, yes) {
      if (yes === true || (await terminal.confirm(question))) return;
      throw new UsageError(
        terminal.isInteractive ? "nothing was changed" : `${question} There is no terminal to ask on; use --yes`,
      );
    },
  };
  return context;
}

function openSettings(
  { baseUrl, caFile, organization, data: dataDirectory, profile }: GlobalFlags,
  { environment, defaultDirectory }: CliDeps,
  createsProfile: boolean,
): FoundSettings {
  const { profiles } = createsProfile ? readProfiles(environment) : { profiles: undefined };
  const named = (name: string | undefined) =>
    name === undefined || profiles === undefined || Object.hasOwn(profiles, name) ? name : undefined;
  const variables = { ...environment, HOLDFAST_PROFILE: named(environment.HOLDFAST_PROFILE) };
  const options = { baseUrl, caFile, organization, dataDirectory, profile: named(profile) };
  return findSettings(options, variables, defaultDirectory);
}

function signedIn(credentials: Credentials | undefined): Credentials {
  if (credentials !== undefined) return credentials;
  throw new NotSignedIn("not signed in: run holdfast login, or set HOLDFAST_API_KEY_ID and HOLDFAST_API_KEY_SECRET");
}
