import { isIP } from "node:net";
import type { Clock } from "@holdfast/common/clock.ts";
import { endpointOf } from "@holdfast/common/endpoint.ts";
import type { Log } from "@holdfast/common/log.ts";
import type { RequestHandler } from "@holdfast/gateway/exchange.ts";
import { createApiServer } from "@holdfast/gateway/server.ts";
import type { InstallationAuthority } from "./pki/create-authority.ts";
import { createRenewedIdentity } from "./pki/renewed-identity.ts";

export interface ApiListenerDeps {
  readonly controllerId: string;
  readonly handler: RequestHandler;
  /** host:port. */
  readonly listen: string;
  /** Its host is what clients know the API by. */
  readonly baseUrl: string;
  readonly authority: InstallationAuthority;
  readonly clock: Clock;
  readonly log: Log;
}

/** The API on its port, with a certificate that is renewed while it serves. */
export interface ApiListener {
  /** Lets requests end within graceMs. */
  close(graceMs: number): Promise<void>;
}

/** Resolves when it listens. */
export async function startApiListener(deps: ApiListenerDeps): Promise<ApiListener> {
  const { controllerId, handler, authority, clock, log } = deps;
  const { hostname } = new URL(deps.baseUrl);
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
  const { host, port } = endpointOf(deps.listen);
  await server.listen(port, host);
  return {
    async close(graceMs) {
      renewals.close();
      identity.close();
      await server.close(graceMs);
    },
  };
}
