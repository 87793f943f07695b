import { randomUUID } from "node:crypto";
import { isIP } from "node:net";
import type { Clock } from "@holdfast/common/clock.ts";
import { endpointsOf } from "@holdfast/common/endpoint.ts";
import type { Log } from "@holdfast/common/log.ts";
import { createGateway } from "@holdfast/gateway/gateway.ts";
import type { GatewayDeps } from "@holdfast/gateway/gateway-deps.ts";
import { createApiServer } from "@holdfast/gateway/server.ts";
import type { ControllerConfig } from "./config.ts";
import { openApiWebhooks } from "./event/event-openapi.ts";
import { eventTypes } from "./event/event-types.ts";
import type { InstallationAuthority } from "./pki/create-authority.ts";
import { createRenewedIdentity } from "./pki/renewed-identity.ts";

export interface ApiDeps
  extends Required<Pick<GatewayDeps, "services" | "authenticator" | "refused" | "keptAnswers" | "reached" | "ready">> {
  readonly controllerId: string;
  /** The host of `baseUrl` is what clients know the API by. */
  readonly config: Pick<ControllerConfig, "apiListen" | "baseUrl" | "rateLimit">;
  readonly authority: InstallationAuthority;
  readonly clock: Clock;
  readonly log: Log;
}

/** The gateway on its port, with a certificate that is renewed while it serves. */
export interface Api {
  /** Lets requests end within graceMs. */
  close(graceMs: number): Promise<void>;
}

/** Resolves when it listens. */
export async function startApi(deps: ApiDeps): Promise<Api> {
  const { controllerId, authority, clock, log } = deps;
  const { apiListen, baseUrl, rateLimit } = deps.config;
  const handler = createGateway({
    services: deps.services,
    authenticator: deps.authenticator,
    rateLimit: { requests: rateLimit, windowMs: 60_000 },
    refused: deps.refused,
    keptAnswers: deps.keptAnswers,
    webhooks: openApiWebhooks(eventTypes),
    reached: deps.reached,
    ready: deps.ready,
    baseUrl,
    log,
    clock,
    // Of a request, which nobody sorts: UUIDs of version 7 cost ten times as much.
    newId: randomUUID,
  });
  const { hostname } = new URL(baseUrl);
  const address = hostname.replaceAll(/[[\]]/g, "");
  const isAddress = isIP(address) !== 0;
  const identity = await createRenewedIdentity({
    authority,
    identity: { kind: "gateway", id: controllerId },
    names: [...new Set(["localhost", ...(isAddress ? [] : [hostname])])],
    addresses: [...new Set(["127.0.0.1", ...(isAddress ? [address] : [])])],
    clock,
    log,
  });
  const { privateKey: key, certificate: cert } = identity.current;
  const server = createApiServer({ handler, key, cert });
  const renewals = identity.subscribe(({ privateKey, certificate }) => server.renew(privateKey, certificate));
  for (const { host, port } of endpointsOf(apiListen)) await server.listen(port, host);
  return {
    async close(graceMs) {
      renewals.close();
      identity.close();
      await server.close(graceMs);
    },
  };
}
