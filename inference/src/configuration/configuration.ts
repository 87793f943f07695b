import { fromJsonString, toJsonString } from "@bufbuild/protobuf";
import type { Catalog } from "@holdfast/common/inference/catalog.ts";
import { readCatalog, shippedCatalog } from "@holdfast/common/inference/catalog.ts";
import {
  type Configuration as ConfigurationMessage,
  ConfigurationSchema,
  type Key,
  type OrganizationSettings,
} from "@holdfast/proto/holdfast/inference/v1/feed_pb.ts";

/** Configuration of calls in memory: keys, organizations, catalog. */
export interface Configuration {
  /** The key of this id. */
  key(id: string): KeySettings | undefined;
  organization(id: string): Organization | undefined;
  readonly catalog: Catalog;
  /** host:port of the controllers, from the last message. */
  readonly controllers: readonly string[];
  readonly refusals: { readonly listeners: readonly string[]; readonly networks: readonly string[] };
  /**
   * Applies a change. A full configuration replaces the current one only when its last message arrived. True once the
   * change is in effect.
   */
  apply(change: ConfigurationMessage): boolean;
  /** The complete configuration as text, including secrets. */
  snapshot(): string;
}

export interface KeySettings {
  readonly id: string;
  readonly organizationId: string;
  readonly secretHash: Uint8Array;
  /** Token limit per month; undefined for no limit. */
  readonly monthlyTokenLimit: number | undefined;
  readonly rateLimitRpm: number | undefined;
  /** Expiry in milliseconds since 1970; 0 for never. */
  readonly expiresAtMs: number;
  readonly suspended: boolean;
}

export interface Organization {
  readonly id: string;
  readonly monthlyLimitMicrocents: number;
  readonly euOnly: boolean;
  /** The month in which the cost limit was reached and calls are refused, such as "2026-11"; empty for none. */
  readonly circuitOpenPeriod: string;
  readonly providers: ReadonlyMap<string, ProviderSettings>;
}

export interface ProviderSettings {
  readonly enabled: boolean;
  readonly apiKey: string;
  /** Base URL; empty for the catalog's. */
  readonly baseUrl: string;
  readonly euEndpoint: boolean;
  /**
   * TLS options of connections; undefined for the defaults. All connections get the same object, since connection pools
   * compare it by identity.
   */
  readonly tls: { readonly ca: string } | undefined;
}

interface Contents {
  readonly keys: Map<string, KeySettings>;
  readonly organizations: Map<string, Organization>;
}

const blank = (): Contents => ({ keys: new Map(), organizations: new Map() });

/** `start` is the snapshot of an earlier process. */
export function createConfiguration(start?: string): Configuration {
  let current = blank();
  let pending: Contents | undefined;
  let catalog = shippedCatalog;
  let catalogText = "{}";
  let controllers: readonly string[] = [];
  let refusals: Configuration["refusals"] = { listeners: [], networks: [] };
  /** Received messages, for the snapshot. */
  let messages = { keys: new Map<string, Key>(), organizations: new Map<string, OrganizationSettings>() };
  let replacesMessages = false;

  const configuration: Configuration = {
    key: (id) => current.keys.get(id),
    organization: (id) => current.organizations.get(id),
    get catalog() {
      return catalog;
    },
    get controllers() {
      return controllers;
    },
    get refusals() {
      return refusals;
    },
    apply(change) {
      if (change.controllers.length > 0) controllers = [...change.controllers];
      if (change.refusals !== undefined) refusals = change.refusals;
      if (change.catalog !== "") {
        catalogText = change.catalog;
        catalog = readCatalog(catalogText);
      }
      if (change.reset) {
        pending = blank();
        replacesMessages = true;
      }
      if (replacesMessages) {
        messages = { keys: new Map(), organizations: new Map() };
        replacesMessages = false;
      }
      const into = pending ?? current;
      for (const key of change.keys) {
        if (key.removed) into.keys.delete(key.id);
        else into.keys.set(key.id, keyOf(key));
        record(messages.keys, key.id, key);
      }
      for (const organization of change.organizations) {
        const { organizationId: id } = organization;
        if (organization.removed) into.organizations.delete(id);
        else into.organizations.set(id, organizationOf(organization));
        record(messages.organizations, id, organization);
      }
      if (!change.synced) return false;
      if (pending !== undefined) current = pending;
      pending = undefined;
      return true;
    },
    snapshot: () =>
      toJsonString(ConfigurationSchema, {
        $typeName: ConfigurationSchema.typeName,
        revision: 0n,
        reset: true,
        synced: true,
        controllers: [...controllers],
        refusals: {
          $typeName: "holdfast.inference.v1.Refusals",
          listeners: [...refusals.listeners],
          networks: [...refusals.networks],
        },
        catalog: catalogText,
        keys: [...messages.keys.values()],
        organizations: [...messages.organizations.values()],
      }),
  };
  if (start !== undefined) configuration.apply(fromJsonString(ConfigurationSchema, start));
  return configuration;
}

function record<T extends { readonly removed: boolean }>(into: Map<string, T>, id: string, message: T): void {
  if (message.removed) into.delete(id);
  else into.set(id, message);
}

function keyOf(key: Key): KeySettings {
  return {
    id: key.id,
    organizationId: key.organizationId,
    secretHash: key.secretHash,
    monthlyTokenLimit: key.monthlyTokenLimit === undefined ? undefined : Number(key.monthlyTokenLimit),
    rateLimitRpm: key.rateLimitRpm,
    expiresAtMs: Number(key.expiresAtMs),
    suspended: key.suspended,
  };
}

function organizationOf(settings: OrganizationSettings): Organization {
  return {
    id: settings.organizationId,
    monthlyLimitMicrocents: Number(settings.monthlyLimitMicrocents),
    euOnly: settings.euOnly,
    circuitOpenPeriod: settings.circuitOpenPeriod,
    providers: new Map(
      settings.providers.map(({ name, enabled, apiKey, baseUrl, euEndpoint, caCertificate }) => [
        name,
        { enabled, apiKey, baseUrl, euEndpoint, tls: caCertificate === "" ? undefined : { ca: caCertificate } },
      ]),
    ),
  };
}
