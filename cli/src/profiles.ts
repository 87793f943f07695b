import { resolve } from "node:path";
import { type Profile, readProfiles, removeProfile, saveProfile, selectProfile } from "@holdfast/sdk/node/profiles.ts";
import type { Context } from "./context.ts";
import { NotSignedIn, UsageError } from "./exit-code.ts";

export type { Profile };

/** The stored credentials of a sign-in. */
export type Session = Omit<Profile, "base_url" | "ca_file">;

interface NamedProfile {
  readonly name: string;
  readonly profile: Profile;
}

/** Stores a session for this installation in a profile, makes the profile current and returns its name. */
export function saveSession(context: Context, session: Session): string {
  const { environment, settings } = context;
  const name = requestedProfile(context) ?? "default";
  const { profiles } = readProfiles(environment);
  const before = Object.hasOwn(profiles, name) ? profiles[name] : undefined;
  if (before !== undefined && before.base_url !== settings.baseUrl && requestedProfile(context) === undefined)
    throw new UsageError(`the profile ${name} is of ${before.base_url}: choose another profile with --profile`);
  const { baseUrl, caFile } = settings;
  const authority = caFile === undefined ? {} : { ca_file: resolve(caFile) };
  saveProfile(environment, name, { base_url: baseUrl, ...authority, ...session });
  selectProfile(environment, name);
  return name;
}

/** Removes the credentials of a profile; address and user name remain. */
export function removeSession({ environment }: Context, { name, profile }: NamedProfile): void {
  const { token: _token, api_key_id: _id, api_key_secret: _secret, password: _password, ...rest } = profile;
  saveProfile(environment, name, rest);
}

/** The profile of this name, or the current one. Throws UsageError if it does not exist. */
export function findProfile(context: Context, named = requestedProfile(context)): NamedProfile {
  const { current, profiles } = readProfiles(context.environment);
  const name = named ?? current;
  if (name === null) throw new NotSignedIn("no profile is in use; run holdfast login");
  const profile = Object.hasOwn(profiles, name) ? profiles[name] : undefined;
  if (profile === undefined) throw new UsageError(`there is no profile ${name}`);
  return { name, profile };
}

/** All profiles without their secrets. */
export function listProfiles({ environment }: Context) {
  const { current, profiles } = readProfiles(environment);
  return Object.entries(profiles).map(([name, profile]) => ({
    in_use: name === current ? "*" : "",
    ...describeProfile({ name, profile }),
  }));
}

/** A profile without its secrets. */
export function describeProfile({ name, profile }: NamedProfile) {
  const { base_url, ca_file = null, organization = null, username, api_key_id: key, token } = profile;
  const signedIn = token !== undefined || profile.api_key_secret !== undefined || profile.password !== undefined;
  const who = username ?? key ?? (token === undefined ? null : "a token");
  return { name, base_url, ca_file, organization, who, signed_in: signedIn };
}

export function useProfile({ environment }: Context, name: string): void {
  selectProfile(environment, name);
}

export function deleteProfile({ environment }: Context, name: string): void {
  removeProfile(environment, name);
}

function requestedProfile({ flags, environment }: Context): string | undefined {
  return flags.profile ?? (environment.HOLDFAST_PROFILE || undefined);
}
