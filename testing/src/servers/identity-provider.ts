import { createServer } from "node:https";
import Provider from "oidc-provider";
import { createTestCertificate } from "../controller/test-certificate.ts";
import { freePorts } from "../platform/free-ports.ts";

/** A user of the provider. */
interface ProviderUser {
  readonly sub: string;
  readonly email?: string;
  readonly email_verified?: boolean;
}

/** oidc-provider as another provider that users sign in with, without prompts. */
export interface IdentityProvider {
  readonly issuer: string;
  /** PEM of the authority of its certificate. */
  readonly ca: string;
  readonly clientId: string;
  readonly clientSecret: string;
  /** User that signs in next; undefined: the sign-in is denied. */
  user: ProviderUser | undefined;
  close(): Promise<void>;
}

export async function startIdentityProvider(host: string, redirectUris: string[]): Promise<IdentityProvider> {
  const [port = 0] = await freePorts(1);
  const { cert, key } = await createTestCertificate(undefined, host);
  const issuer = `https://${host}:${port}`;
  const client = { client_id: "shop", client_secret: "secret-of-the-shop-at-the-provider" };
  const known = new Map<string, ProviderUser>();
  const provider = new Provider(issuer, {
    clients: [{ ...client, redirect_uris: redirectUris, token_endpoint_auth_method: "client_secret_basic" }],
    claims: { openid: ["sub"], email: ["email", "email_verified"] },
    conformIdTokenClaims: true,
    features: { devInteractions: { enabled: false } },
    cookies: { keys: ["of a test"] },
    pkce: { required: () => true },
    interactions: { url: (_ctx, { uid }) => `/interaction/${uid}` },
    findAccount: (_ctx, id) => ({ accountId: id, claims: () => ({ ...known.get(id), sub: id }) }),
    async loadExistingGrant({ oidc }) {
      const { client: asking, session } = oidc;
      if (asking === undefined || session?.accountId === undefined) return undefined;
      const grant = new oidc.provider.Grant({ clientId: asking.clientId, accountId: session.accountId });
      grant.addOIDCScope("openid email");
      await grant.save();
      return grant;
    },
  });
  const serve = provider.callback();
  const state: { user: ProviderUser | undefined } = { user: undefined };
  const server = createServer({ key, cert }, (request, response) => {
    if (request.url?.startsWith("/interaction/") !== true) return void serve(request, response);
    const { user } = state;
    if (user !== undefined) known.set(user.sub, user);
    const result =
      user === undefined
        ? { error: "access_denied", error_description: "nobody is here" }
        : { login: { accountId: user.sub } };
    provider.interactionFinished(request, response, result).catch(() => response.writeHead(500).end());
  });
  await new Promise<void>((resolve) => server.listen(port, host, resolve));
  return {
    issuer,
    ca: cert,
    clientId: client.client_id,
    clientSecret: client.client_secret,
    get user() {
      return state.user;
    },
    set user(next) {
      state.user = next;
    },
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}
