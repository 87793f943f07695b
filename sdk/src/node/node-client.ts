import { type Client, createClient } from "../client.ts";
import type { TransportOptions } from "../transport.ts";
import { createAuthorityFetch } from "./authority-fetch.ts";
import type { Environment } from "./profiles.ts";
import { type FoundSettings, type SettingsOptions, readSettings } from "./settings.ts";

/** Settings of a client; absent ones come from the environment or a profile. */
export interface NodeClientOptions
  extends SettingsOptions,
    Pick<TransportOptions, "timeoutMs" | "retries" | "outageMs" | "signal"> {
  /** Environment variables; `process.env` by default. */
  readonly environment?: Environment;
}

/**
 * Creates a client. Settings come from the options, then the environment (HOLDFAST_BASE_URL, _API_KEY_ID,
 * _API_KEY_SECRET, _TOKEN, _CA_FILE, _ORGANIZATION, _PROFILE, _DATA), then the current profile. Throws SettingsError
 * when a required setting is missing.
 */
export function createNodeClient(options: NodeClientOptions = {}): Client {
  const { environment = process.env, timeoutMs, retries, outageMs, signal, ...settings } = options;
  const transport = transportOptionsOf(readSettings(settings, environment));
  return createClient({ ...transport, timeoutMs, retries, outageMs, signal });
}

/** Converts settings to options of createClient. Throws SettingsError when the CA file cannot be read. */
export function transportOptionsOf(settings: Omit<FoundSettings, "userCredentials" | "username">): TransportOptions {
  const { baseUrl, credentials, organization, caFile } = settings;
  return { baseUrl, credentials, organization, fetch: caFile === undefined ? undefined : createAuthorityFetch(caFile) };
}
