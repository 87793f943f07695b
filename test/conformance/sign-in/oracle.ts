import { createHash, generateKeyPairSync } from "node:crypto";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { create } from "@bufbuild/protobuf";
import { createLog } from "@holdfast/common/log.ts";
import { AppSignInSchema } from "@holdfast/proto/holdfast/issuer/v1/issuer_pb.ts";
import Provider from "oidc-provider";
import type { App } from "../../../issuer/src/app.ts";
import { createDerivedKeys } from "../../../issuer/src/derived-keys.ts";
import { type OutgoingResponse, type IncomingRequest, Refused } from "../../../issuer/src/http/messages.ts";
import { authorize } from "../../../issuer/src/protocol/authorize.ts";
import { readTokenCredentials } from "../../../issuer/src/protocol/token-credentials.ts";
import { grantTokens } from "../../../issuer/src/protocol/token.ts";
import { createTokenKeys } from "../../../issuer/src/protocol/token-keys.ts";
import type { Statements } from "../../../issuer/src/store/database.ts";

export const clientId = "shop";
export const confidentialId = "web";
export const secret = "secret-of-the-confidential-client";
export const redirectUri = "https://shop.example/callback";
const issuerUrl = "https://issuer.example";

/** oidc-provider on loopback as the reference, and Holdfast's issuer, with equal clients and without users. */
export interface Oracle {
  /** Outcome of a request in both: a page, an error for the client, or the sign-in of a user. */
  authorize(parameters: URLSearchParams): Promise<{ readonly holdfast: string; readonly reference: string }>;
  token(
    form: URLSearchParams,
    authorization: string | undefined,
  ): Promise<{ readonly holdfast: string; readonly reference: string }>;
  close(): Promise<void>;
}

export async function startOracle(): Promise<Oracle> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const issuer = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const serve = referenceProvider(issuer).callback();
  server.on("request", (request, response) => void serve(request, response));
  const app = holdfastApp();
  return {
    async authorize(parameters) {
      const path = `/auth?${parameters.toString()}`;
      const [response, reference] = await Promise.all([
        responseOf(() => authorize(app, authorizeRequest({ query: parameters }))),
        fetch(`${issuer}${path}`, { redirect: "manual" }),
      ]);
      await reference.arrayBuffer();
      const location = [response.headers["location"] ?? ""].flat()[0] ?? "";
      return {
        holdfast: outcomeOf(response.status, location, "/sign-in/"),
        reference: outcomeOf(reference.status, reference.headers.get("location") ?? "", "/interaction/"),
      };
    },
    async token(form, authorization) {
      const headers = new Headers(authorization === undefined ? {} : { authorization });
      const [response, reference] = await Promise.all([
        responseOf(async () => {
          const request = authorizeRequest({ method: "POST", form, authorization });
          return grantTokens(app, request, readTokenCredentials(app, request));
        }),
        fetch(`${issuer}/token`, { method: "POST", body: form, headers }),
      ]);
      const errorOf = (text: string) => (JSON.parse(text) as { error?: string }).error ?? "none";
      return {
        holdfast: `${response.status} ${errorOf(response.body)}`,
        reference: `${reference.status} ${errorOf(await reference.text())}`,
      };
    },
    close: () => closed(server),
  };
}

function referenceProvider(issuer: string): Provider {
  const both = { redirect_uris: [redirectUri], grant_types: ["authorization_code", "refresh_token"] };
  const provider = new Provider(issuer, {
    clients: [
      { ...both, client_id: clientId, token_endpoint_auth_method: "none" },
      { ...both, client_id: confidentialId, client_secret: secret },
    ],
    scopes: ["openid", "email", "offline_access"],
    features: { devInteractions: { enabled: false } },
    responseTypes: ["code"],
    pkce: { required: (_ctx, { clientAuthMethod }) => clientAuthMethod === "none" },
    interactions: { url: (_ctx, { uid }) => `/interaction/${uid}` },
    cookies: { keys: ["of a test"] },
    findAccount: () => undefined,
  });
  // Warnings of oidc-provider are for its operators.
  provider.on("server_error", (_ctx, error) => console.error(error));
  return provider;
}

function holdfastApp(): App {
  const { privateKey, publicKey } = generateKeyPairSync("rsa", { modulusLength: 2_048 });
  const key = {
    kid: "key",
    status: "active",
    privateKey: privateKey.export({ type: "pkcs8", format: "pem" }).toString(),
    publicJwk: JSON.stringify({ ...publicKey.export({ format: "jwk" }), kid: "key", alg: "RS256", use: "sig" }),
  };
  const config = create(AppSignInSchema, {
    appId: clientId,
    issuerUrl,
    host: "issuer.example",
    keys: [key],
    clients: [
      { clientId, redirectUris: [redirectUri], requirePkce: true },
      {
        clientId: confidentialId,
        confidential: true,
        secretHash: createHash("sha256").update(secret).digest("hex"),
        redirectUris: [redirectUri],
      },
    ],
  });
  const noSession = async () => {
    throw new Error("nothing leaves");
  };
  const nothing: Statements = { rows: async () => [], transaction: (work) => work(async () => []) };
  return {
    config,
    keys: createDerivedKeys(Buffer.alloc(32, 7).toString("base64url")),
    tokens: createTokenKeys(config.keys, issuerUrl, Date.now),
    // There are no codes and no sessions yet.
    database: {
      ...nothing,
      tokens: nothing,
      moveTo: () => undefined,
      close: async () => undefined,
    },
    egress: { connect: noSession, request: noSession },
    mailRateLimit: { admits: () => true },
    now: Date.now,
    monotonicMs: () => performance.now(),
    log: createLog("oracle"),
  };
}

function authorizeRequest(more: Partial<IncomingRequest>): IncomingRequest {
  return {
    method: "GET",
    path: "/",
    query: new URLSearchParams(),
    form: new URLSearchParams(),
    cookies: new Map(),
    authorization: undefined,
    origin: undefined,
    fetchSite: undefined,
    address: "192.0.2.1",
    source: "192.0.2.1",
    network: "192.0.2.1",
    isSharedSource: false,
    userAgent: "",
    ...more,
  };
}

async function responseOf(work: () => Promise<OutgoingResponse>): Promise<OutgoingResponse> {
  try {
    return await work();
  } catch (error) {
    if (error instanceof Refused) return error.response;
    throw error;
  }
}

function outcomeOf(status: number, location: string, interaction: string): string {
  if (status >= 400) return "a page";
  if (location.startsWith(interaction)) return "sign-in page";
  const { origin, pathname, searchParams, hash } = new URL(location);
  if (`${origin}${pathname}` !== redirectUri) return `sent to ${origin}${pathname}`;
  return searchParams.get("error") ?? new URLSearchParams(hash.slice(1)).get("error") ?? "an answer";
}

function closed(server: Server): Promise<void> {
  return new Promise((resolve) => {
    server.close(() => resolve());
    server.closeAllConnections();
  });
}
