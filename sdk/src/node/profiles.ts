import { chmodSync, mkdirSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from "node:fs";
import { homedir } from "node:os";
import { dirname, join } from "node:path";

/** Environment variables by name, as in `process.env`. */
export type Environment = Readonly<Record<string, string | undefined>>;

/** An installation with credentials: a token, an API key, or user name and password. */
export interface Profile {
  readonly base_url: string;
  /** Base URL of the inference proxy. */
  readonly inference_url?: string | undefined;
  /** PEM file of the certificate authorities to trust instead of the default ones. */
  readonly ca_file?: string | undefined;
  readonly organization?: string | undefined;
  readonly token?: string | undefined;
  readonly api_key_id?: string | undefined;
  readonly api_key_secret?: string | undefined;
  readonly username?: string | undefined;
  readonly password?: string | undefined;
}

/** The content of profiles.json. */
export interface Profiles {
  /** Name of the profile in use; null for none. */
  readonly current: string | null;
  readonly profiles: Readonly<Record<string, Profile>>;
}

/** Settings cannot be read, or a required setting is missing. */
export class SettingsError extends Error {
  override readonly name = "SettingsError";
}

const noProfiles: Profiles = { current: null, profiles: {} };
const validName = /^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/;

/** Path of profiles.json: `$XDG_CONFIG_HOME/holdfast/profiles.json`, with `~/.config` as the default directory. */
export function profilesFile(environment: Environment): string {
  const base = environment.XDG_CONFIG_HOME || join(environment.HOME || homedir(), ".config");
  return join(base, "holdfast", "profiles.json");
}

/** Reads the profiles of this user. Throws SettingsError when other users can read the file, because it has secrets. */
export function readProfiles(environment: Environment): Profiles {
  const path = profilesFile(environment);
  const status = statSync(path, { throwIfNoEntry: false });
  if (status === undefined) return noProfiles;
  if (process.platform !== "win32" && (status.mode & 0o077) !== 0)
    throw new SettingsError(`others can read ${path}: chmod 600 it, and change the secrets in it`);
  try {
    const { current, profiles } = JSON.parse(readFileSync(path, "utf8")) as Partial<Profiles>;
    return { current: current ?? null, profiles: profiles ?? {} };
  } catch (cause) {
    throw new SettingsError(`${path} is not JSON`, { cause });
  }
}

/** Adds or replaces a profile; the first one becomes current. */
export function saveProfile(environment: Environment, name: string, profile: Profile): void {
  if (!validName.test(name))
    throw new SettingsError(`"${name}" is not a valid profile name: use letters, digits and . _ -`);
  const { current, profiles } = readProfiles(environment);
  write(environment, { current: current ?? name, profiles: { ...profiles, [name]: profile } });
}

/** Makes a profile current. Throws SettingsError when it does not exist. */
export function selectProfile(environment: Environment, name: string): void {
  const { profiles } = readProfiles(environment);
  write(environment, { current: existing(profiles, name), profiles });
}

/** Removes a profile. Throws SettingsError when it does not exist. */
export function removeProfile(environment: Environment, name: string): void {
  const { current, profiles } = readProfiles(environment);
  const { [existing(profiles, name)]: _, ...rest } = profiles;
  write(environment, { current: current === name ? null : current, profiles: rest });
}

function existing(profiles: Profiles["profiles"], name: string): string {
  if (!Object.hasOwn(profiles, name)) throw new SettingsError(`there is no profile ${name}`);
  return name;
}

/** Replaces the file atomically, with mode 0600. */
function write(environment: Environment, profiles: Profiles): void {
  const path = profilesFile(environment);
  const directory = dirname(path);
  mkdirSync(directory, { recursive: true, mode: 0o700 });
  chmodSync(directory, 0o700);
  const next = `${path}.${process.pid}`;
  rmSync(next, { force: true });
  writeFileSync(next, `${JSON.stringify(profiles, null, 2)}\n`, { mode: 0o600, flag: "wx" });
  renameSync(next, path);
}
