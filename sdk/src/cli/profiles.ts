import { resolve } from "node:path";
import { type Profile, readProfiles, removeProfile, saveProfile, selectProfile } from "../node/profiles.ts";
import type { Context } from "./context.ts";
import { NotSignedIn, UsageError } from "./exit-code.ts";

export type { Profile };

/** What is kept about who signs in. */
export type Session = Omit<Profile, "base_url" | "ca_file">;

interface NamedProfile {
  readonly name: string;
  readonly profile: Profile;
}

/** Keeps a session for this installation, and makes its profile the one in use; resolves to its name. */
export function keepSession(context: Context, session: Session): string {
  const { environment, settings } = context;
  const name = nameAsked(context) ?? "default";
  const { profiles } = readProfiles(environment);
  const before = Object.hasOwn(profiles, name) ? profiles[name] : undefined;
  if (before !== undefined && before.base_url !== settings.baseUrl && nameAsked(context) === undefined)
    throw new UsageError(`the profile ${name} is of ${before.base_url}: name another one by --profile`);
  const { baseUrl, caFile } = settings;
  const authority = caFile === undefined ? {} : { ca_file: resolve(caFile) };
  saveProfile(environment, name, { base_url: baseUrl, ...authority, ...session });
  selectProfile(environment, name);
  return name;
}

/** Removes the credentials; keeps the installation's address and the user name. */
export function forgetSession({ environment }: Context, { name, profile }: NamedProfile): void {
  const { token: _token, api_key_id: _id, api_key_secret: _secret, password: _password, ...rest } = profile;
  saveProfile(environment, name, rest);
}

/** The one of this name, or the one in use. Throws UsageError when there is none. */
export function findProfile(context: Context, asked = nameAsked(context)): NamedProfile {
  const { current, profiles } = readProfiles(context.environment);
  const name = asked ?? current;
  if (name === null) throw new NotSignedIn("no profile is in use; holdfast login makes one");
  const profile = Object.hasOwn(profiles, name) ? profiles[name] : undefined;
  if (profile === undefined) throw new UsageError(`there is no profile ${name}`);
  return { name, profile };
}

/** All of them without their secrets. */
export function listProfiles({ environment }: Context) {
  const { current, profiles } = readProfiles(environment);
  return Object.entries(profiles).map(([name, profile]) => ({
    in_use: name === current ? "*" : "",
    ...describeProfile({ name, profile }),
  }));
}

/** Without its secrets. */
export function describeProfile({ name, profile }: NamedProfile) {
  const { base_url, ca_file = null, organization = null, username, api_key_id: key, token } = profile;
  const signedIn = token !== undefined || profile.api_key_secret !== undefined || profile.password !== undefined;
  const who = username ?? key ?? (token === undefined ? null : "a token");
  return { name, base_url, ca_file, organization, who, signed_in: signedIn };
}

export function useProfile({ environment }: Context, name: string): void {
  selectProfile(environment, name);
}

export function forgetProfile({ environment }: Context, name: string): void {
  removeProfile(environment, name);
}

function nameAsked({ flags, environment }: Context): string | undefined {
  return flags.profile ?? (environment.HOLDFAST_PROFILE || undefined);
}
