import { type Client, createClient } from "../client.ts";
import type { TransportOptions } from "../transport.ts";
import { createAuthorityFetch } from "./authority-fetch.ts";
import type { Environment } from "./profiles.ts";
import { type FoundSettings, type GivenSettings, readSettings } from "./settings.ts";

/** Settings that are left out come from the environment or a profile. */
export interface NodeClientOptions extends GivenSettings, Pick<TransportOptions, "timeoutMs" | "retries" | "signal"> {
  /** `process.env` when left out. */
  readonly environment?: Environment;
}

/**
 * A client with the settings given, else with those of the environment (HOLDFAST_BASE_URL, _API_KEY_ID,
 * _API_KEY_SECRET, _TOKEN, _CA_FILE, _ORGANIZATION, _PROFILE, _DATA), else with those of the current profile. Throws
 * SettingsError when something is missing.
 */
export function createNodeClient(options: NodeClientOptions = {}): Client {
  const { environment = process.env, timeoutMs, retries, signal, ...given } = options;
  return createClient({ ...transportOptionsOf(readSettings(given, environment)), timeoutMs, retries, signal });
}

/** These settings as options of createClient. Throws SettingsError when the file of authorities cannot be read. */
export function transportOptionsOf(settings: Omit<FoundSettings, "person" | "username">): TransportOptions {
  const { baseUrl, credentials, organization, caFile } = settings;
  return { baseUrl, credentials, organization, fetch: caFile === undefined ? undefined : createAuthorityFetch(caFile) };
}
