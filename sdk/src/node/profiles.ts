import { chmodSync, mkdirSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from "node:fs";
import { homedir } from "node:os";
import { dirname, join } from "node:path";

/** Variables by name, as in `process.env`. */
export type Environment = Readonly<Record<string, string | undefined>>;

/** One installation and its credentials: a token, an API key, or a person's. */
export interface Profile {
  readonly base_url: string;
  /** Base URL of the inference proxy. */
  readonly inference_url?: string | undefined;
  /** PEM file of the authorities to trust instead of the usual ones. */
  readonly ca_file?: string | undefined;
  readonly organization?: string | undefined;
  readonly token?: string | undefined;
  readonly api_key_id?: string | undefined;
  readonly api_key_secret?: string | undefined;
  readonly username?: string | undefined;
  readonly password?: string | undefined;
}

/** What the file of profiles holds. */
export interface Profiles {
  /** Name of the one to use when none is named. */
  readonly current: string | null;
  readonly profiles: Readonly<Record<string, Profile>>;
}

/** Settings cannot be read, or something in them is missing. */
export class SettingsError extends Error {
  override readonly name = "SettingsError";
}

const nobody: Profiles = { current: null, profiles: {} };
const validName = /^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/;

/** `$XDG_CONFIG_HOME/holdfast/profiles.json`, below `~/.config` when that is not set. */
export function profilesFile(environment: Environment): string {
  const base = environment.XDG_CONFIG_HOME || join(environment.HOME || homedir(), ".config");
  return join(base, "holdfast", "profiles.json");
}

/** Those of this user; none when there is no file. Throws SettingsError when others can read it: it has secrets. */
export function readProfiles(environment: Environment): Profiles {
  const path = profilesFile(environment);
  const status = statSync(path, { throwIfNoEntry: false });
  if (status === undefined) return nobody;
  if (process.platform !== "win32" && (status.mode & 0o077) !== 0)
    throw new SettingsError(`others can read ${path}: chmod 600 it, and change the secrets in it`);
  try {
    const { current, profiles } = JSON.parse(readFileSync(path, "utf8")) as Partial<Profiles>;
    return { current: current ?? null, profiles: profiles ?? {} };
  } catch (cause) {
    throw new SettingsError(`${path} is not JSON`, { cause });
  }
}

/** Adds or replaces one; the first becomes the current one. */
export function saveProfile(environment: Environment, name: string, profile: Profile): void {
  if (!validName.test(name)) throw new SettingsError(`"${name}" is no name of a profile: letters, digits, . _ -`);
  const { current, profiles } = readProfiles(environment);
  write(environment, { current: current ?? name, profiles: { ...profiles, [name]: profile } });
}

/** Makes it the current one. Throws SettingsError when there is none of this name. */
export function selectProfile(environment: Environment, name: string): void {
  const { profiles } = readProfiles(environment);
  write(environment, { current: existing(profiles, name), profiles });
}

/** Throws SettingsError when there is none of this name. */
export function removeProfile(environment: Environment, name: string): void {
  const { current, profiles } = readProfiles(environment);
  const { [existing(profiles, name)]: _, ...rest } = profiles;
  write(environment, { current: current === name ? null : current, profiles: rest });
}

function existing(profiles: Profiles["profiles"], name: string): string {
  if (!Object.hasOwn(profiles, name)) throw new SettingsError(`there is no profile ${name}`);
  return name;
}

/** Atomic and private: a reader sees the old file or the new one, and other users can read neither. */
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
