import { readFileSync } from "node:fs";
import { join } from "node:path";
import type { Credentials } from "../transport.ts";
import { type Environment, type Profile, readProfiles, SettingsError } from "./profiles.ts";

const another = "set HOLDFAST_BASE_URL or use a profile";

/** Settings that a caller gives itself. */
export interface GivenSettings {
  readonly baseUrl?: string | undefined;
  readonly credentials?: Credentials | undefined;
  readonly caFile?: string | undefined;
  readonly organization?: string | undefined;
  /** Name of a profile. */
  readonly profile?: string | undefined;
  /** Data directory of a local installation. */
  readonly dataDirectory?: string | undefined;
}

/** An installation and the credentials for it. */
export interface Settings extends FoundSettings {
  readonly credentials: Credentials;
  readonly person: Credentials;
}

/** The same, perhaps without credentials. */
export interface FoundSettings {
  readonly baseUrl: string;
  readonly credentials?: Credentials | undefined;
  /** The person, where a local installation or a profile knows one beside a key; else the same credentials. */
  readonly person?: Credentials | undefined;
  /** Name of the person of these credentials, or of the person who last signed in. */
  readonly username: string | undefined;
  /** PEM file of the authorities to trust instead of the usual ones. */
  readonly caFile: string | undefined;
  readonly organization: string | undefined;
  /** Base URL of the inference proxy, where a local installation or a profile knows it. */
  readonly inferenceUrl?: string | undefined;
  /** Where the local installation keeps its data, if it is one. */
  readonly dataDirectory: string | undefined;
}

/** One source of settings. Credentials that are stored with a base URL are used for that base URL only. */
interface Source extends Partial<Omit<FoundSettings, "baseUrl">> {
  readonly baseUrl?: string | undefined;
  readonly isProfile?: boolean;
  /** Why it has nothing, though it was named. */
  readonly missing?: string;
}

/**
 * Settings given take precedence over the environment, it over the current profile, and that over the local
 * installation in `defaultDirectory`. A profile or data directory ranks where it is named. Throws SettingsError when
 * something is missing.
 */
export function readSettings(given: GivenSettings, environment: Environment, defaultDirectory?: string): Settings {
  const { credentials, person, ...found } = findSettings(given, environment, defaultDirectory);
  if (credentials === undefined || person === undefined) {
    throw new SettingsError(
      "no credential: set HOLDFAST_API_KEY_ID and HOLDFAST_API_KEY_SECRET, or HOLDFAST_TOKEN, or sign in to a profile",
    );
  }
  return { ...found, credentials, person };
}

/**
 * The same, but without a credential when there is none: for signing in. Throws SettingsError when no installation is
 * named.
 */
export function findSettings(given: GivenSettings, environment: Environment, defaultDirectory?: string): FoundSettings {
  const sources: readonly Source[] = [
    given,
    ...profileNamed(given.profile, environment),
    ...installationIn(given.dataDirectory),
    environmentSource(environment),
    ...profileNamed(environment.HOLDFAST_PROFILE, environment),
    ...installationIn(environment.HOLDFAST_DATA),
    ...profileNamed(readProfiles(environment).current ?? undefined, environment),
    ...installationIn(defaultDirectory),
  ];
  const baseUrl = baseUrlOf(sources);
  const usable = sources.filter((source) => source.baseUrl === undefined || trimmed(source.baseUrl) === baseUrl);
  // A profile that was signed out has no credentials; the owner's of the local installation do not stand in for them.
  const profileAt = usable.findIndex(({ isProfile }) => isProfile);
  const index = usable.findIndex(
    ({ credentials, person, dataDirectory }, at) =>
      (credentials !== undefined || person !== undefined) &&
      (dataDirectory === undefined || profileAt === -1 || at < profileAt),
  );
  const signedIn = usable[index];
  // The organization beside a credential that is not used is not meant.
  const counted = signedIn === undefined ? usable : usable.slice(0, index + 1);
  const organization = counted.find((source) => source.organization)?.organization;
  const person = signedIn?.person ?? signedIn?.credentials;
  // A key is of one organization; for another one the person's own credentials are used.
  const isOther = organization !== undefined && organization !== signedIn?.organization;
  const credentials = (isOther ? person : undefined) ?? signedIn?.credentials ?? person;
  return {
    baseUrl,
    credentials,
    person,
    organization,
    username: (signedIn ?? usable.find((source) => source.username))?.username,
    caFile: usable.find((source) => source.caFile)?.caFile,
    inferenceUrl: usable.find((source) => source.inferenceUrl)?.inferenceUrl,
    dataDirectory: usable.find((source) => source.dataDirectory !== undefined)?.dataDirectory,
  };
}

function baseUrlOf(sources: readonly Source[]): string {
  const source = sources.find(({ baseUrl, missing }) => baseUrl || missing !== undefined);
  if (source?.baseUrl) return trimmed(source.baseUrl);
  throw new SettingsError(source?.missing ?? `no installation is named: ${another}`);
}

function environmentSource(environment: Environment): Source {
  const { HOLDFAST_BASE_URL: baseUrl, HOLDFAST_CA_FILE: caFile, HOLDFAST_ORGANIZATION: organization } = environment;
  const { HOLDFAST_TOKEN: token, HOLDFAST_API_KEY_ID: id, HOLDFAST_API_KEY_SECRET: secret } = environment;
  if (id && !secret && !token) throw new SettingsError("HOLDFAST_API_KEY_ID is set without HOLDFAST_API_KEY_SECRET");
  return {
    baseUrl,
    caFile,
    organization,
    credentials: credentialsOf({ token, api_key_id: id, api_key_secret: secret }),
  };
}

function profileNamed(name: string | undefined, environment: Environment): Source[] {
  if (!name) return [];
  const { profiles } = readProfiles(environment);
  const profile = Object.hasOwn(profiles, name) ? profiles[name] : undefined;
  if (profile === undefined) throw new SettingsError(`there is no profile ${name}`);
  return [{ ...sourceOf(profile), isProfile: true }];
}

/** The installation that wrote its admin.json into this directory. */
function installationIn(directory: string | undefined): Source[] {
  if (!directory) return [];
  const text = readIfThere(join(directory, "admin.json"));
  if (text === undefined) return [{ missing: whyMissing(directory) }];
  // The token of admin.json is short-lived, its key is not.
  const { token: _, ...admin } = JSON.parse(text) as Profile;
  return [{ ...sourceOf(admin), dataDirectory: directory }];
}

/** admin.json is there for as long as the installation runs. */
function whyMissing(directory: string): string {
  const isStopped = readIfThere(join(directory, "installation.json")) !== undefined;
  return isStopped
    ? `the installation in ${directory} does not run: \`npm start\` starts it`
    : `there is no installation in ${directory}: ${another}`;
}

function sourceOf(profile: Profile): Source {
  const { base_url: baseUrl, inference_url: inferenceUrl, ca_file: caFile, organization, username, password } = profile;
  const person = username && password ? basic(username, password) : undefined;
  return { baseUrl, inferenceUrl, caFile, organization, username, person, credentials: credentialsOf(profile) };
}

function credentialsOf(profile: Omit<Profile, "base_url">): Credentials | undefined {
  if (profile.token) return { kind: "bearer", token: profile.token };
  if (profile.api_key_id && profile.api_key_secret) return basic(profile.api_key_id, profile.api_key_secret);
  return undefined;
}

function basic(name: string, secret: string): Credentials {
  return { kind: "basic", name, secret };
}

function trimmed(baseUrl: string): string {
  return baseUrl.replace(/\/+$/, "");
}

function readIfThere(path: string): string | undefined {
  try {
    return readFileSync(path, "utf8");
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return undefined;
    throw error;
  }
}
