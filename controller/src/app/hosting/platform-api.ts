import { isIPv4 } from "node:net";
import { isDeepStrictEqual } from "node:util";
import type { Clock } from "@holdfast/common/clock.ts";
import { integer, list, type ValuesOf } from "@holdfast/common/config.ts";
import { hashPurposes, newSecretText, type Token, type TokenSpec, tokenKind } from "#access/credential/credential.ts";
import { privateNameOf } from "#fleet/zone/dns-record.ts";
import type { Sealer } from "#kernel/secrets/sealer.ts";
import type { Collection } from "#kernel/store/collection.ts";
import { keyOf, newMetadata, nextMetadata, type Stored } from "#kernel/store/resource.ts";
import type { Changes } from "#kernel/store/unit-of-work.ts";
import { managedServiceKind } from "#services/service/managed-service.ts";
import { type AppObject, appKind } from "../app/app.ts";
import { addressesMax, type EndpointTarget } from "./delivery-plan.ts";
import type { ApiToken } from "./hosting.ts";

export const platformApiSettings = {
  platformApiAddresses: list(
    "HOLDFAST_APP_API_ADDRESSES",
    "Addresses at which the machines of hosted apps reach the API; empty: programs get no PLATFORM_API_URL",
    "",
  ),
  platformApiPort: integer("HOLDFAST_APP_API_PORT", "Port of these addresses", 8_443),
} as const;

export type PlatformApiSettings = ValuesOf<typeof platformApiSettings>;

/** Port of the API in containers. A program and a relay cannot listen on the same port. */
export const platformApiPort = 7_443;

/** Name of the API in containers, and in the certificate of the API. No public name has the label `private`. */
export function platformApiHost(domain: string): string {
  return privateNameOf(`api.${domain}`);
}

/** Scopes of a program: it reads what is attached to its app. */
const scopes = ["files:read", "services:read"] as const;

/** The platform's API as the programs of hosted apps use it. */
export interface PlatformApi {
  /** How containers reach it; undefined if the installation does not offer it to them. */
  readonly endpoint: EndpointTarget | undefined;
  /** `PLATFORM_API_URL` and `PLATFORM_API_TOKEN`; none before the app has a token. */
  variablesOf(app: AppObject): Readonly<Record<string, string>>;
  /**
   * The token of an app, which may read these services alone. Adds a token to the unit of work if the app has none, or
   * none any more, and changes its limits if other services are attached.
   */
  ensureToken(
    unit: Changes,
    app: AppObject,
    serviceIds: readonly string[],
    signal: AbortSignal,
  ): Promise<{ readonly apiToken: ApiToken | undefined; readonly isChanged: boolean }>;
  /** Removes the token in the unit of work that deletes the app. */
  removeToken(unit: Changes, app: AppObject, signal: AbortSignal): Promise<void>;
  /** Calls back with the id of an app whose token has changed. */
  subscribe(onChange: (appId: string) => void): { close(): void };
}

export interface PlatformApiDeps extends PlatformApiSettings {
  readonly tokens: Pick<Collection<Token>, "get" | "getCurrent" | "subscribe">;
  /** The platform's domain. */
  readonly domain: string;
  readonly sealer: Pick<Sealer, "keyedHash" | "open" | "seal">;
  readonly newId: () => string;
  readonly clock: Clock;
}

/**
 * A hosted app has one token for its whole life: programs get it by each release, and its limits follow the app's
 * attachments. It has no creator, so it outlives the credentials of users. A user who deletes it gets another one for
 * the app's next deployment.
 */
export function createPlatformApi(deps: PlatformApiDeps): PlatformApi {
  const { platformApiAddresses: addresses, tokens, domain, sealer, newId, clock } = deps;
  const host = platformApiHost(domain);
  const reached = addresses.filter(isIPv4).slice(0, addressesMax);
  const endpoint: EndpointTarget | undefined =
    reached.length === 0
      ? undefined
      : { host, port: platformApiPort, targetPort: deps.platformApiPort, addresses: reached };

  async function tokenOf({ status }: AppObject, signal: AbortSignal): Promise<Stored<Token> | undefined> {
    const { id } = status.hosting?.apiToken ?? {};
    return id === undefined ? undefined : (tokens.get(id) ?? (await tokens.getCurrent(id, signal)));
  }

  function add(unit: Changes, { metadata }: AppObject, resources: TokenSpec["resources"]): ApiToken {
    const id = newId();
    const text = newSecretText("hft_", id);
    unit.create(tokenKind, {
      metadata: newMetadata(id, clock.now(), { organizationId: metadata.organizationId }),
      spec: {
        secretHash: sealer.keyedHash(hashPurposes.token, text),
        scopes,
        expiresAt: null,
        ...(resources && { resources }),
        owner: { kind: appKind.name, id: metadata.id, name: metadata.name },
      },
      status: {},
    });
    return { id, sealed: sealer.seal(text, keyOf(tokenKind, id)) };
  }

  return {
    endpoint,
    variablesOf({ status }) {
      const { apiToken } = status.hosting ?? {};
      if (endpoint === undefined || apiToken === undefined) return {};
      return {
        PLATFORM_API_URL: `https://${host}:${platformApiPort}`,
        PLATFORM_API_TOKEN: sealer.open(apiToken.sealed, keyOf(tokenKind, apiToken.id)),
      };
    },
    async ensureToken(unit, app, serviceIds, signal) {
      const before = app.status.hosting?.apiToken;
      if (endpoint === undefined) return { apiToken: before, isChanged: false };
      const resources = serviceIds.map((id) => ({ kind: managedServiceKind.name, id }));
      const token = await tokenOf(app, signal);
      if (before === undefined || token === undefined) return { apiToken: add(unit, app, resources), isChanged: true };
      if (isDeepStrictEqual(token.object.spec.resources, resources)) return { apiToken: before, isChanged: false };
      unit.update(tokenKind, token, {
        ...token.object,
        metadata: nextMetadata(token.object.metadata, clock.now()),
        spec: { ...token.object.spec, resources },
      });
      return { apiToken: before, isChanged: true };
    },
    async removeToken(unit, app, signal) {
      const token = await tokenOf(app, signal);
      if (token !== undefined) unit.remove(tokenKind, token);
    },
    subscribe: (onChange) =>
      tokens.subscribe((id, before) => {
        const { owner } = (tokens.get(id)?.object ?? before)?.spec ?? {};
        if (owner?.kind === appKind.name) onChange(owner.id);
      }),
  };
}
