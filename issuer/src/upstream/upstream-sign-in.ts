import { randomBytes } from "node:crypto";
import type { IdentityProvider } from "@holdfast/proto/holdfast/issuer/v1/issuer_pb.ts";
import * as client from "openid-client";
import type { App } from "../app.ts";
import { type OutgoingResponse, type IncomingRequest, Refused, seeOther } from "../http/messages.ts";
import { completeUpstreamSignIn } from "../sign-in/complete-sign-in.ts";
import {
  type Interaction,
  readInteraction,
  saveInteraction,
  sealedState,
  stepPath,
  withSealedState,
} from "../sign-in/interaction.ts";
import { problemPage } from "../sign-in/page.ts";
import { addressPage, type Step, stepInteraction } from "../sign-in/steps.ts";
import { type Provider, providerName, type Providers } from "./provider.ts";

/** Redirect URI for a provider. */
function callbackUrl({ config }: App, provider: string): string {
  return `${config.issuerUrl}/callback/${provider}`;
}

const maxSubjectLength = 255;

/**
 * GET /sign-in/{id}/with-{provider}: redirects to the upstream provider (OpenID Connect Core section 3.1, RFC 7636).
 */
export async function beginUpstreamSignIn(providers: Providers, step: Step, name: string): Promise<OutgoingResponse> {
  const { app, incoming } = step;
  const interaction = await stepInteraction(step);
  const configured = app.config.idpProviders.find(({ provider }) => provider === name);
  if (configured === undefined) return addressPage(app, interaction, "This sign-in method is not configured.", 404);
  const provider = await discoverProvider(providers, app, interaction, configured);
  const verifier = client.randomPKCECodeVerifier();
  const nonce = client.randomNonce();
  const state = `${interaction.id}.${randomBytes(18).toString("base64url")}`;
  const clientState = sealedState(app, interaction);
  const { request } = interaction;
  const url = client.buildAuthorizationUrl(provider, {
    redirect_uri: callbackUrl(app, name),
    scope: configured.scopes.join(" "),
    // A long state of the client returns with the provider's response: the cookie cannot store it.
    state: [state, ...(clientState === undefined ? [] : [clientState])].join("."),
    nonce,
    code_challenge: await client.calculatePKCECodeChallenge(verifier),
    code_challenge_method: "S256",
    // A forced sign-in must be forced at the provider too.
    ...((request.prompt === "login" || request.maxAgeS !== undefined) && { prompt: "login" }),
    ...(request.loginHint !== undefined && { login_hint: request.loginHint }),
  });
  // The interaction has one sign-in method at a time: the fields of a mail and a provider may exceed a cookie.
  const { mail: _, ...withoutMail } = interaction;
  const next = { ...withoutMail, upstream: { provider: name, state, nonce, verifier } };
  return seeOther(url.href, { "set-cookie": saveInteraction(app, incoming, next) });
}

/** GET /callback/{provider}: the provider's response. */
export async function upstreamCallback(
  providers: Providers,
  app: App,
  incoming: IncomingRequest,
  name: string,
): Promise<OutgoingResponse> {
  const state = incoming.query.get("state") ?? "";
  const [id = "", random = "", clientState = ""] = state.split(".");
  const stored = readInteraction(app, incoming.cookies, id);
  const interaction = stored && withSealedState(app, stored, clientState);
  const started = interaction?.upstream;
  const configured = app.config.idpProviders.find(({ provider }) => provider === name);
  if (interaction === undefined || started === undefined || configured === undefined)
    return problemPage(app, 400, "This sign-in has expired. Go back to the app and begin again.");
  if (started.provider !== name || started.state !== `${id}.${random}`)
    return problemPage(app, 400, "This response belongs to another sign-in.");
  const provider = await discoverProvider(providers, app, interaction, configured);
  const displayName = providerName(configured);
  const calls = providers.run(app, () => claimsOf(provider, app, incoming, started));
  if (calls === undefined)
    return addressPage(app, interaction, `Too many sign-ins wait for ${displayName}. Try again in a few seconds.`, 503);
  const claims = await calls.catch((error: unknown) => {
    app.log.warn("upstream sign-in failed", { app: app.config.appId, error: codeOf(error) });
    return undefined;
  });
  if (claims === undefined || claims.sub.length > maxSubjectLength)
    return addressPage(app, interaction, `${displayName} did not sign you in.`, 400);
  const email = claims["email"];
  const outcome = await completeUpstreamSignIn(app, incoming, interaction, {
    provider: name,
    issuer: claims.iss,
    subject: claims.sub,
    email: typeof email === "string" ? email : undefined,
    emailVerified: claims["email_verified"] === true,
  });
  switch (outcome.kind) {
    case "done":
      return outcome.response;
    case "second":
      return seeOther(stepPath(app, interaction, "/second"), {
        "set-cookie": saveInteraction(app, incoming, outcome.next),
      });
    case "not verified":
      return addressPage(app, interaction, `${displayName} has not verified your address. Sign in by mail.`, 403);
    case "mail first":
      return addressPage(
        app,
        interaction,
        `Sign in by mail once; after that you can sign in with ${displayName}.`,
        403,
      );
    case "closed":
      return addressPage(app, interaction, "This address may not sign in here.", 403);
  }
}

/** Discovers the provider. Throws Refused with a page that offers mail instead. */
async function discoverProvider(
  providers: Providers,
  app: App,
  interaction: Interaction,
  configured: IdentityProvider,
): Promise<Provider> {
  try {
    return await providers.of(app, configured);
  } catch (error) {
    app.log.warn("upstream provider unavailable", {
      app: app.config.appId,
      provider: configured.provider,
      error: codeOf(error),
    });
    throw new Refused(
      addressPage(app, interaction, `${providerName(configured)} does not respond. Sign in by mail.`, 502),
    );
  }
}

async function claimsOf(
  provider: Provider,
  app: App,
  { query }: IncomingRequest,
  { provider: name, nonce, verifier }: NonNullable<Interaction["upstream"]>,
): Promise<client.IDToken | undefined> {
  const url = new URL(callbackUrl(app, name));
  url.search = query.toString();
  const tokens = await client.authorizationCodeGrant(provider, url, {
    pkceCodeVerifier: verifier,
    // The caller has compared the state with the interaction's.
    expectedState: query.get("state") ?? "",
    expectedNonce: nonce,
    idTokenExpected: true,
  });
  const claims = tokens.claims();
  if (claims === undefined || claims["email"] !== undefined) return claims;
  // Some providers return the address only in userinfo (OpenID Connect Core section 5.4).
  const { email, email_verified } = await client.fetchUserInfo(provider, tokens.access_token, claims.sub);
  return { ...claims, ...(email !== undefined && { email, email_verified }) };
}

function codeOf(error: unknown): string {
  return error instanceof Error && "code" in error ? String(error.code) : "unknown";
}
