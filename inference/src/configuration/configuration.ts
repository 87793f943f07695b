import { fromJsonString, toJsonString } from "@bufbuild/protobuf";
import type { Catalog } from "@holdfast/common/inference/catalog.ts";
import { readCatalog, shippedCatalog } from "@holdfast/common/inference/catalog.ts";
import {
  type Configuration as ConfigurationMessage,
  ConfigurationSchema,
  type Key,
  type OrganizationSettings,
} from "@holdfast/proto/holdfast/inference/v1/feed_pb.ts";

/** What calls are judged by, in memory. */
export interface Configuration {
  /** By id. */
  key(id: string): KeySettings | undefined;
  organization(id: string): Organization | undefined;
  readonly catalog: Catalog;
  /** host:port of the controllers, as the last of them told. */
  readonly controllers: readonly string[];
  readonly refusals: { readonly listeners: readonly string[]; readonly networks: readonly string[] };
  /** Applies a change; a new whole configuration replaces the old one only when all of it is there. True once it is served. */
  apply(change: ConfigurationMessage): boolean;
  /** All of it as text, with secrets. */
  snapshot(): string;
}

export interface KeySettings {
  readonly id: string;
  readonly organizationId: string;
  readonly secretHash: Uint8Array;
  /** Undefined: no limit. */
  readonly monthlyTokenLimit: number | undefined;
  readonly rateLimitRpm: number | undefined;
  /** Milliseconds since 1970; 0 for never. */
  readonly expiresAtMs: number;
  readonly suspended: boolean;
}

export interface Organization {
  readonly id: string;
  readonly monthlyLimitMicrocents: number;
  readonly euOnly: boolean;
  /** The month whose circuit is open; empty while none is. */
  readonly circuitOpenPeriod: string;
  readonly providers: ReadonlyMap<string, ProviderSettings>;
}

export interface ProviderSettings {
  readonly enabled: boolean;
  readonly apiKey: string;
  /** Empty: the catalog's. */
  readonly baseUrl: string;
  readonly euEndpoint: boolean;
  /** Of connections to it; the same object for all of them, whose pools go by it. Undefined: the usual one. */
  readonly tls: { readonly ca: string } | undefined;
}

interface Contents {
  readonly keys: Map<string, KeySettings>;
  readonly organizations: Map<string, Organization>;
}

const blank = (): Contents => ({ keys: new Map(), organizations: new Map() });

/** `start` is a snapshot of an earlier process. */
export function createConfiguration(start?: string): Configuration {
  let current = blank();
  let coming: Contents | undefined;
  let catalog = shippedCatalog;
  let catalogText = "{}";
  let controllers: readonly string[] = [];
  let refusals: Configuration["refusals"] = { listeners: [], networks: [] };
  /** Messages as they came, for the snapshot. */
  let told = { keys: new Map<string, Key>(), organizations: new Map<string, OrganizationSettings>() };
  let tellsAnew = false;

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
        coming = blank();
        tellsAnew = true;
      }
      if (tellsAnew) {
        told = { keys: new Map(), organizations: new Map() };
        tellsAnew = false;
      }
      const into = coming ?? current;
      for (const key of change.keys) {
        if (key.removed) into.keys.delete(key.id);
        else into.keys.set(key.id, keyOf(key));
        note(told.keys, key.id, key);
      }
      for (const organization of change.organizations) {
        const { organizationId: id } = organization;
        if (organization.removed) into.organizations.delete(id);
        else into.organizations.set(id, organizationOf(organization));
        note(told.organizations, id, organization);
      }
      if (!change.synced) return false;
      if (coming !== undefined) current = coming;
      coming = undefined;
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
        keys: [...told.keys.values()],
        organizations: [...told.organizations.values()],
      }),
  };
  if (start !== undefined) configuration.apply(fromJsonString(ConfigurationSchema, start));
  return configuration;
}

function note<T extends { readonly removed: boolean }>(into: Map<string, T>, id: string, message: T): void {
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
