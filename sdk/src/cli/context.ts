import type { ManagedService } from "../answers.ts";
import { type Client, createClient } from "../client.ts";
import { NotFound } from "../errors.ts";
import { transportOptionsOf } from "../node/node-client.ts";
import { readProfiles } from "../node/profiles.ts";
import { findSettings, type FoundSettings } from "../node/settings.ts";
import type { Credentials } from "../transport.ts";
import { NotSignedIn, UsageError } from "./exit-code.ts";
import { createOutput, type Format, type Output, type Screen } from "./output.ts";
import { createProgress, type Progress } from "./progress.ts";
import type { Terminal } from "./terminal.ts";

/** What commands work with. */
export interface CliDeps {
  readonly environment: Readonly<Record<string, string | undefined>>;
  /** Data of the local installation to use when nothing else is named. */
  readonly defaultDirectory: string;
  /** Aborts on Ctrl-C and on signals, with an Interrupted. */
  readonly signal: AbortSignal;
  readonly stdout: Screen;
  readonly stderr: Screen;
  readonly terminal: Terminal;
}

/** Flags that every command has. */
export interface GlobalFlags {
  readonly output: Format;
  readonly profile?: string;
  readonly baseUrl?: string;
  readonly caFile?: string;
  readonly organization?: string;
  readonly data?: string;
}

/** One run of a command. */
export interface Context {
  readonly flags: GlobalFlags;
  readonly environment: CliDeps["environment"];
  readonly signal: AbortSignal;
  readonly terminal: Terminal;
  readonly output: Output;
  /** For people, beside the result. */
  note(text: string): void;
  /** The installation and the credentials; read at the first use. Throws UsageError without credentials. */
  readonly settings: FoundSettings;
  /** Of the local installation that is meant, whether there is one or not. */
  readonly dataDirectory: string;
  readonly client: Client;
  /** As a person, whom a key or a token cannot stand for; asks for their password when it is kept nowhere. */
  person(): Promise<Client>;
  /** As the person of the local installation, who sees more than its key; elsewhere the same as `client`. */
  readonly widest: Client;
  /** The API of this installation with these credentials. */
  clientOf(credentials: Credentials | undefined, organization?: string): Client;
  /** By name, or by id. Throws NotFound. */
  service(nameOrId: string): Promise<ManagedService>;
  /** An id as it is: it may be of a service that is gone. */
  serviceId(nameOrId: string): Promise<string>;
  progress(name: string): Progress;
  /** The name that this program was called by, for lines to paste. */
  readonly program: string;
  /** Throws UsageError unless `yes` was given or a person agrees. */
  confirm(question: string, yes: boolean | undefined): Promise<void>;
}

/** Ids begin with a digit, names with a letter. */
const isId = (nameOrId: string) => /^\d/.test(nameOrId);

export interface ContextOptions {
  /** The profile that is named need not be there yet. */
  readonly makesProfile?: boolean;
}

/** Nothing is read and nothing asked of the network before it is needed. */
export async function openContext(
  flags: GlobalFlags,
  deps: CliDeps,
  { makesProfile = false }: ContextOptions = {},
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
      stderr.write(`${text}\n`);
    },
    get settings() {
      settings ??= openSettings(flags, deps, makesProfile);
      return settings;
    },
    dataDirectory: flags.data ?? (environment.HOLDFAST_DATA || deps.defaultDirectory),
    get client() {
      client ??= context.clientOf(signedIn(context.settings.credentials), context.settings.organization);
      return client;
    },
    get widest() {
      return context.clientOf(signedIn(context.settings.person), context.settings.organization);
    },
    clientOf(credentials, organization) {
      const { caFile, baseUrl, dataDirectory } = context.settings;
      const options = transportOptionsOf({ baseUrl, caFile, dataDirectory, organization, credentials });
      return createClient({ ...options, signal });
    },
    async person() {
      const { person, username, organization } = context.settings;
      if (person?.kind === "basic" || username === undefined) return context.widest;
      const secret = await terminal.askSecret(`Password of ${username}`);
      return context.clientOf({ kind: "basic", name: username, secret }, organization);
    },
    progress: (name) => createProgress(stderr, name),
    async service(nameOrId) {
      if (isId(nameOrId)) return context.client.services.get(nameOrId, { signal });
      for await (const service of context.client.services.list({ name: nameOrId }, { signal })) return service;
      throw noService(nameOrId);
    },
    serviceId: async (nameOrId) => (isId(nameOrId) ? nameOrId : (await context.service(nameOrId)).id),
    async confirm(question, yes) {
      if (yes === true || (await terminal.confirm(question))) return;
      throw new UsageError(
        terminal.isInteractive ? "nothing was changed" : `${question} There is no terminal to ask on; --yes agrees`,
      );
    },
  };
  return context;
}

function noService(name: string): NotFound {
  return noneNamed("service", name);
}

/** As the API would say it: names are looked for in lists. */
export function noneNamed(what: "service" | "stack" | "pipeline", name: string): NotFound {
  const detail = `there is no ${what} ${name}`;
  const problem = { type: "about:blank", title: detail, status: 404, detail, instance: "", code: `${what}_not_found` };
  return new NotFound({ ...problem, errors: [] });
}

function openSettings(
  { baseUrl, caFile, organization, data: dataDirectory, profile }: GlobalFlags,
  { environment, defaultDirectory }: CliDeps,
  makesProfile: boolean,
): FoundSettings {
  const { profiles } = makesProfile ? readProfiles(environment) : { profiles: undefined };
  const named = (name: string | undefined) =>
    name === undefined || profiles === undefined || Object.hasOwn(profiles, name) ? name : undefined;
  const variables = { ...environment, HOLDFAST_PROFILE: named(environment.HOLDFAST_PROFILE) };
  const given = { baseUrl, caFile, organization, dataDirectory, profile: named(profile) };
  return findSettings(given, variables, defaultDirectory);
}

function signedIn(credentials: Credentials | undefined): Credentials {
  if (credentials !== undefined) return credentials;
  throw new NotSignedIn(
    "nothing says who asks: holdfast login, or set HOLDFAST_API_KEY_ID and HOLDFAST_API_KEY_SECRET",
  );
}
