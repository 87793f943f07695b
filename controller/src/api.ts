import { randomUUID } from "node:crypto";
import { isIP } from "node:net";
import { createClientAddresses } from "@holdfast/common/client-address.ts";
import type { Clock } from "@holdfast/common/clock.ts";
import { endpointsOf } from "@holdfast/common/endpoint.ts";
import type { Log } from "@holdfast/common/log.ts";
import { createGateway } from "@holdfast/gateway/gateway.ts";
import type { GatewayDeps } from "@holdfast/gateway/gateway-deps.ts";
import type { Mount } from "@holdfast/gateway/mounts.ts";
import { createPublicRateLimit } from "@holdfast/gateway/public-rate-limit.ts";
import { createApiServer } from "@holdfast/https/server.ts";
import { createRenewedIdentity } from "@holdfast/mtls/renewed-identity.ts";
import { platformApiHost } from "#app/hosting/platform-api.ts";
import type { FleetSettings } from "#fleet/fleet-settings.ts";
import { openApiWebhooks } from "#insight/event/event-openapi.ts";
import type { EventDefinition } from "#kernel/outbox/event-definition.ts";
import type { InstallationAuthority } from "#kernel/pki/create-authority.ts";
import { openApiCertificate } from "./api-certificate.ts";
import { createConsoleBundle } from "./console-bundle.ts";
import type { ApiSettings } from "./config.ts";

export interface ApiDeps
  extends Required<
    Pick<
      GatewayDeps,
      | "services"
      | "ownerPaths"
      | "schemaRules"
      | "authenticator"
      | "refused"
      | "storedResponses"
      | "reached"
      | "requireCurrent"
      | "ready"
    >
  > {
  readonly controllerId: string;
  readonly pages: readonly Mount[];
  /** Event types that the API description lists. */
  readonly eventTypes: ReadonlyMap<string, EventDefinition>;
  readonly admitGrowth: () => void;
  /** Settings of the listener. The host in `baseUrl` is a name in its certificate, and the API's name in containers. */
  readonly config: ApiSettings & Pick<FleetSettings, "domain">;
  readonly authority: InstallationAuthority;
  readonly clock: Clock;
  readonly log: Log;
}

/** The gateway on its port, with a certificate that is renewed while it serves. */
export interface Api {
  /** Stops when running requests have ended, after graceMs at the latest. */
  close(graceMs: number): Promise<void>;
}

/** Starts the API; resolves when it listens. */
export async function startApi(deps: ApiDeps): Promise<Api> {
  const { controllerId, authority, clock, log } = deps;
  const { apiListen, baseUrl, rateReads, rateChanges, rateMessages, followers } = deps.config;
  const clients = createClientAddresses(deps.config);
  const { sources } = clients;
  const publicRateLimit = createPublicRateLimit({ perSecond: deps.config.rateSource, sources }, clock);
  const rateLimited = (page: Mount): Mount => ({
    ...page,
    handle: async (exchange) => {
      publicRateLimit.take(exchange.source);
      await deps.requireCurrent();
      await page.handle(exchange);
    },
  });
  const handler = createGateway({
    services: deps.services,
    ownerPaths: deps.ownerPaths,
    schemaRules: deps.schemaRules,
    authenticator: deps.authenticator,
    rateLimit: { reads: rateReads, changes: rateChanges, messages: rateMessages },
    publicRateLimit,
    clients,
    mounts: deps.pages.map(rateLimited),
    console: createConsoleBundle(deps.config.consoleCode),
    concurrencyLimits: { followers: { credential: followers, organization: 5 * followers, all: 50 * followers } },
    refused: deps.refused,
    admitGrowth: deps.admitGrowth,
    storedResponses: deps.storedResponses,
    webhooks: openApiWebhooks(deps.eventTypes),
    reached: deps.reached,
    requireCurrent: deps.requireCurrent,
    ready: deps.ready,
    baseUrl,
    log,
    clock,
    // Request ids need no order, and a UUIDv7 takes ten times as much CPU time.
    newId: randomUUID,
  });
  const { hostname } = new URL(baseUrl);
  const address = hostname.replaceAll(/[[\]]/g, "");
  const isAddress = isIP(address) !== 0;
  const identity = await createRenewedIdentity({
    authority,
    identity: { kind: "gateway", id: controllerId },
    names: [...new Set(["localhost", platformApiHost(deps.config.domain), ...(isAddress ? [] : [hostname])])],
    addresses: [...new Set(["127.0.0.1", ...(isAddress ? [address] : [])])],
    clock,
    log,
  });
  const { privateKey: key, certificate: cert } = identity.current;
  const apiCertificate = openApiCertificate(
    {
      certFile: deps.config.apiCertFile,
      keyFile: deps.config.apiCertKeyFile,
      isAwaited: deps.config.apiCertAwaited === "yes",
    },
    log,
  );
  const { certificates } = apiCertificate;
  const maxConnections = deps.config.apiConnections;
  const server = createApiServer({ handler, log, key, cert, certificates, clients, maxConnections });
  const renewals = identity.subscribe(({ privateKey, certificate }) => server.renew(privateKey, certificate));
  for (const { host, port } of endpointsOf(apiListen)) await server.listen(port, host);
  return {
    async close(graceMs) {
      apiCertificate.close();
      renewals.close();
      identity.close();
      await server.close(graceMs);
    },
  };
}
