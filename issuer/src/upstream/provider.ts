import { createKeyedCounter } from "@holdfast/common/concurrency/keyed-counter.ts";
import type { IdentityProvider } from "@holdfast/proto/holdfast/issuer/v1/issuer_pb.ts";
import * as client from "openid-client";
import type { App } from "../app.ts";

/** An upstream provider with its client configuration. */
export type Provider = client.Configuration;

/** The app on whose behalf a provider is called. */
type Caller = Pick<App, "config" | "egress">;

/** Upstream providers. Anyone can cause calls to them, so frequency and concurrency are bounded. */
export interface Providers {
  /** Discovers a provider's metadata and caches it. Throws if discovery fails. */
  of(app: Caller, provider: IdentityProvider): Promise<Provider>;
  /** Runs the calls of one sign-in; undefined if the app has reached its limit of concurrent sign-ins. */
  run<T>(app: Pick<App, "config">, work: () => Promise<T>): Promise<T> | undefined;
}

const deadlineMs = 8_000;
const cacheMs = 10 * 60_000;
/** Time for which a failed discovery is cached. */
const failureCacheMs = 1_000;
const maxBytes = 512 << 10;
const maxProviders = 1_000;
/** Maximum number of concurrent upstream sign-ins of an app. */
const maxSignIns = 32;

export function createProviders(monotonicMs: () => number): Providers {
  const discovered = new Map<string, { readonly provider: Promise<Provider>; readonly until: number }>();
  /** Sign-ins in flight by app. */
  const inFlight = createKeyedCounter();
  return {
    run({ config: { appId } }, work) {
      const slot = inFlight.take([{ key: appId, max: maxSignIns }]);
      return slot.exceeded === undefined ? work().finally(slot.release) : undefined;
    },
    of(app, provider) {
      const { issuerUrl, clientId, clientSecret, caCertificate } = provider;
      const key = JSON.stringify([app.config.appId, issuerUrl, clientId, clientSecret, caCertificate]);
      const cached = discovered.get(key);
      if (cached !== undefined && cached.until > monotonicMs()) return cached.provider;
      if (discovered.size >= maxProviders) discovered.clear();
      const discovery = discover(app, provider);
      discovered.set(key, { provider: discovery, until: monotonicMs() + cacheMs });
      discovery.catch(() => discovered.set(key, { provider: discovery, until: monotonicMs() + failureCacheMs }));
      return discovery;
    },
  };
}

async function discover(app: Caller, { issuerUrl, clientId, clientSecret, caCertificate }: IdentityProvider) {
  const fetch = guardedFetch(app, caCertificate);
  const options = { [client.customFetch]: fetch, timeout: deadlineMs / 1_000 };
  const discovered = await client.discovery(new URL(issuerUrl), clientId, undefined, client.None(), options);
  const server = discovered.serverMetadata();
  // Prefer the method that every provider supports (OpenID Connect Discovery section 3).
  const methods = server.token_endpoint_auth_methods_supported ?? ["client_secret_basic"];
  const authentication = methods.includes("client_secret_basic")
    ? client.ClientSecretBasic(clientSecret)
    : client.ClientSecretPost(clientSecret);
  const provider = new client.Configuration(server, clientId, { client_secret: clientSecret }, authentication);
  provider[client.customFetch] = fetch;
  provider.timeout = deadlineMs / 1_000;
  // Verify the ID token's signature in addition to the TLS connection.
  client.enableNonRepudiationChecks(provider);
  return provider;
}

/** A fetch function over the egress client. */
function guardedFetch({ egress, config }: Caller, caCertificate: string): client.CustomFetch {
  return async (url, { method, headers, body, signal }) => {
    const text = body instanceof URLSearchParams ? body.toString() : body;
    if (text !== undefined && text !== null && typeof text !== "string") throw new Error("the body is not text");
    const response = await egress.request(url, {
      method: method === "POST" ? "POST" : "GET",
      headers,
      ...(typeof text === "string" && { body: text }),
      deadlineMs,
      maxBytes: maxBytes,
      organizationId: config.appId,
      signal: signal ?? AbortSignal.timeout(deadlineMs),
      ...(caCertificate !== "" && { tls: { ca: caCertificate } }),
    });
    const bytes = await response.bytes();
    const { status } = response;
    const hasNoBody = status === 204 || status === 304;
    return new Response(hasNoBody ? null : new Uint8Array(bytes), { status, headers: response.headers });
  };
}

/** Display name of a provider. */
export function providerName({ provider, issuerUrl }: Pick<IdentityProvider, "provider" | "issuerUrl">): string {
  return provider === "google" ? "Google" : (URL.parse(issuerUrl)?.hostname ?? issuerUrl);
}
