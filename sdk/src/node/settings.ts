import { readFileSync } from "node:fs";
import { join } from "node:path";
import type { Credentials } from "../transport.ts";
import { type Environment, type Profile, readProfiles, SettingsError } from "./profiles.ts";

const advice = "set HOLDFAST_BASE_URL or use a profile";

/** Settings passed by the caller. */
export interface SettingsOptions {
  readonly baseUrl?: string | undefined;
  readonly credentials?: Credentials | undefined;
  readonly caFile?: string | undefined;
  readonly organization?: string | undefined;
  /** Name of the profile to use. */
  readonly profile?: string | undefined;
  /** Data directory of a local installation. */
  readonly dataDirectory?: string | undefined;
}

/** Settings with credentials. */
export interface Settings extends FoundSettings {
  readonly credentials: Credentials;
  readonly userCredentials: Credentials;
}

/** Settings of an installation, with credentials if there are any. */
export interface FoundSettings {
  readonly baseUrl: string;
  readonly credentials?: Credentials | undefined;
  /** User name and password, if a source has them in addition to an API key; otherwise the same as `credentials`. */
  readonly userCredentials?: Credentials | undefined;
  /** User name of these credentials, or of the last sign-in. */
  readonly username: string | undefined;
  /** PEM file of the certificate authorities to trust instead of the default ones. */
  readonly caFile: string | undefined;
  readonly organization: string | undefined;
  /** Base URL of the inference proxy, if a local installation or a profile has it. */
  readonly inferenceUrl?: string | undefined;
  /** Data directory of a local installation. */
  readonly dataDirectory: string | undefined;
}

/** One source of settings. Credentials that are stored with a base URL are used for that base URL only. */
interface Source extends Partial<Omit<FoundSettings, "baseUrl">> {
  readonly baseUrl?: string | undefined;
  readonly isProfile?: boolean;
  /** Error text of a source that was named and has no settings. */
  readonly missing?: string;
}

/**
 * Reads settings. Precedence: `options`, the environment, the current profile, the local installation in
 * `defaultDirectory`. A profile or data directory that `options` or the environment names ranks directly after it.
 * Throws SettingsError when a required setting is missing.
 */
export function readSettings(options: SettingsOptions, environment: Environment, defaultDirectory?: string): Settings {
  const { credentials, userCredentials, ...found } = findSettings(options, environment, defaultDirectory);
  if (credentials === undefined || userCredentials === undefined) {
    throw new SettingsError(
      "no credential: set HOLDFAST_API_KEY_ID and HOLDFAST_API_KEY_SECRET, or HOLDFAST_TOKEN, or sign in to a profile",
    );
  }
  return { ...found, credentials, userCredentials };
}

/**
 * Reads settings, whose credentials may be absent, such as before signing in. Throws SettingsError if no installation
 * is named.
 */
export function findSettings(
  options: SettingsOptions,
  environment: Environment,
  defaultDirectory?: string,
): FoundSettings {
  const sources: readonly Source[] = [
    options,
    ...profileNamed(options.profile, environment),
    ...installationIn(options.dataDirectory),
    environmentSource(environment),
    ...profileNamed(environment.HOLDFAST_PROFILE, environment),
    ...installationIn(environment.HOLDFAST_DATA),
    ...profileNamed(readProfiles(environment).current ?? undefined, environment),
    ...installationIn(defaultDirectory),
  ];
  const baseUrl = baseUrlOf(sources);
  const usable = sources.filter((source) => source.baseUrl === undefined || trimmed(source.baseUrl) === baseUrl);
  // A signed-out profile has no credentials; the credentials of the local installation's owner must not replace them.
  const profileAt = usable.findIndex(({ isProfile }) => isProfile);
  const index = usable.findIndex(
    ({ credentials, userCredentials, dataDirectory }, at) =>
      (credentials !== undefined || userCredentials !== undefined) &&
      (dataDirectory === undefined || profileAt === -1 || at < profileAt),
  );
  const signedIn = usable[index];
  // The organization of a source whose credentials are not used is ignored.
  const counted = signedIn === undefined ? usable : usable.slice(0, index + 1);
  const organization = counted.find((source) => source.organization)?.organization;
  const userCredentials = signedIn?.userCredentials ?? signedIn?.credentials;
  // An API key belongs to one organization; for another one the user's credentials are used.
  const isOther = organization !== undefined && organization !== signedIn?.organization;
  const credentials = (isOther ? userCredentials : undefined) ?? signedIn?.credentials ?? userCredentials;
  return {
    baseUrl,
    credentials,
    userCredentials,
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
  throw new SettingsError(source?.missing ?? `no installation is named: ${advice}`);
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

/** The installation with its admin.json in this directory. */
function installationIn(directory: string | undefined): Source[] {
  if (!directory) return [];
  const text = readIfPermitted(join(directory, "admin.json"));
  if (text === null) return [{ missing: `only the operator reads ${directory}: holdfast login --base-url URL` }];
  if (text === undefined) return [{ missing: whyMissing(directory) }];
  // The token of admin.json expires within hours; its API key does not.
  const { token: _, ...admin } = JSON.parse(text) as Profile;
  return [{ ...sourceOf(admin), dataDirectory: directory }];
}

/** admin.json exists while the installation runs. */
function whyMissing(directory: string): string {
  const isStopped = readIfPresent(join(directory, "installation.json")) !== undefined;
  return isStopped
    ? `the installation in ${directory} does not run: \`npm start\` starts it`
    : `there is no installation in ${directory}: ${advice}`;
}

function sourceOf(profile: Profile): Source {
  const { base_url: baseUrl, inference_url: inferenceUrl, ca_file: caFile, organization, username, password } = profile;
  const userCredentials = username && password ? basic(username, password) : undefined;
  return {
    baseUrl,
    inferenceUrl,
    caFile,
    organization,
    username,
    userCredentials,
    credentials: credentialsOf(profile),
  };
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

/**
 * The file's text, undefined if it is absent, null if this user may not read it: other users of the host have profiles,
 * and must not fail because of the operator's file.
 */
function readIfPermitted(path: string): string | null | undefined {
  try {
    return readIfPresent(path);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "EACCES") return null;
    throw error;
  }
}

function readIfPresent(path: string): string | undefined {
  try {
    return readFileSync(path, "utf8");
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return undefined;
    throw error;
  }
}
