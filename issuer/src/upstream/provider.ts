import type { IdentityProvider } from "@holdfast/proto/holdfast/issuer/v1/issuer_pb.ts";
import * as client from "openid-client";
import type { App } from "../app.ts";

/** Another provider as it is spoken to. */
export type Provider = client.Configuration;

/** For whom a provider is called. */
type Caller = Pick<App, "config" | "egress">;

/** Other providers, which strangers have called for them: how often, and how many at a time, is bounded. */
export interface Providers {
  /** Finds out, and remembers for a while, what a provider says of itself. Throws whatever keeps it from that. */
  of(app: Caller, provider: IdentityProvider): Promise<Provider>;
  /** Runs calls for one sign-in; undefined where the app has as many under way as it may. */
  run<T>(app: Pick<App, "config">, work: () => Promise<T>): Promise<T> | undefined;
}

const deadlineMs = 8_000;
const keptMs = 10 * 60_000;
/** A provider that is away is called so often, whoever asks for it. */
const failedMs = 1_000;
const bytesMax = 512 << 10;
const most = 1_000;
/** Sign-ins of an app for which a provider is called. */
const atOnceMax = 32;

export function createProviders(monotonicMs: () => number): Providers {
  const found = new Map<string, { readonly provider: Promise<Provider>; readonly until: number }>();
  /** By app. */
  const underWay = new Map<string, number>();
  return {
    run({ config: { appId } }, work) {
      const before = underWay.get(appId) ?? 0;
      if (before >= atOnceMax) return undefined;
      underWay.set(appId, before + 1);
      return work().finally(() => {
        const left = (underWay.get(appId) ?? 1) - 1;
        if (left === 0) underWay.delete(appId);
        else underWay.set(appId, left);
      });
    },
    of(app, provider) {
      const { issuerUrl, clientId, clientSecret, caCertificate } = provider;
      const key = JSON.stringify([app.config.appId, issuerUrl, clientId, clientSecret, caCertificate]);
      const known = found.get(key);
      if (known !== undefined && known.until > monotonicMs()) return known.provider;
      if (found.size >= most) found.clear();
      const asked = discover(app, provider);
      found.set(key, { provider: asked, until: monotonicMs() + keptMs });
      asked.catch(() => found.set(key, { provider: asked, until: monotonicMs() + failedMs }));
      return asked;
    },
  };
}

async function discover(app: Caller, { issuerUrl, clientId, clientSecret, caCertificate }: IdentityProvider) {
  const fetch = guarded(app, caCertificate);
  const options = { [client.customFetch]: fetch, timeout: deadlineMs / 1_000 };
  const discovered = await client.discovery(new URL(issuerUrl), clientId, undefined, client.None(), options);
  const server = discovered.serverMetadata();
  // Of two ways the one that every provider has (OpenID Connect Discovery section 3).
  const ways = server.token_endpoint_auth_methods_supported ?? ["client_secret_basic"];
  const way = ways.includes("client_secret_basic")
    ? client.ClientSecretBasic(clientSecret)
    : client.ClientSecretPost(clientSecret);
  const provider = new client.Configuration(server, clientId, { client_secret: clientSecret }, way);
  provider[client.customFetch] = fetch;
  provider.timeout = deadlineMs / 1_000;
  // The signature counts too, not only who answered.
  client.enableNonRepudiationChecks(provider);
  return provider;
}

/** Requests that go where users' may, and nowhere else. */
function guarded({ egress, config }: Caller, caCertificate: string): client.CustomFetch {
  return async (url, { method, headers, body, signal }) => {
    const text = body instanceof URLSearchParams ? body.toString() : body;
    if (text !== undefined && text !== null && typeof text !== "string") throw new Error("the body is no text");
    const answer = await egress.request(url, {
      method: method === "POST" ? "POST" : "GET",
      headers,
      ...(typeof text === "string" && { body: text }),
      deadlineMs,
      bytesMax,
      organizationId: config.appId,
      signal: signal ?? AbortSignal.timeout(deadlineMs),
      ...(caCertificate !== "" && { tls: { ca: caCertificate } }),
    });
    const bytes = await answer.bytes();
    const isBare = answer.status === 204 || answer.status === 304;
    return new Response(isBare ? null : new Uint8Array(bytes), { status: answer.status, headers: answer.headers });
  };
}
