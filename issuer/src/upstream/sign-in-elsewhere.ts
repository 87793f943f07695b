import { randomBytes } from "node:crypto";
import type { IdentityProvider } from "@holdfast/proto/holdfast/issuer/v1/issuer_pb.ts";
import * as client from "openid-client";
import type { App } from "../app.ts";
import { type Answer, type Asked, Refused, seeOther } from "../http/exchange.ts";
import { finishElsewhere } from "../sign-in/finish.ts";
import { type Interaction, keepInteraction, readInteraction } from "../sign-in/interaction.ts";
import { problemPage } from "../sign-in/page.ts";
import { addressPage, type Step, stepInteraction } from "../sign-in/steps.ts";
import type { Provider, Providers } from "./provider.ts";
import { providerName } from "./provider-name.ts";

/** Where a provider sends browsers back to. */
function callbackUrl({ config }: App, provider: string): string {
  return `${config.issuerUrl}/callback/${provider}`;
}

const subjectMax = 255;

/** GET /sign-in/{id}/with-{provider}: on to the other provider (OpenID Connect Core section 3.1, RFC 7636). */
export async function beginElsewhere(providers: Providers, step: Step, name: string): Promise<Answer> {
  const { app, asked } = step;
  const interaction = stepInteraction(step);
  const known = app.config.idpProviders.find(({ provider }) => provider === name);
  if (known === undefined) return addressPage(app, interaction, "This way to sign in is not there.", 404);
  const provider = await reached(providers, app, interaction, known);
  const verifier = client.randomPKCECodeVerifier();
  const nonce = client.randomNonce();
  const state = `${interaction.id}.${randomBytes(18).toString("base64url")}`;
  const { request } = interaction;
  const url = client.buildAuthorizationUrl(provider, {
    redirect_uri: callbackUrl(app, name),
    scope: known.scopes.join(" "),
    state,
    nonce,
    code_challenge: await client.calculatePKCECodeChallenge(verifier),
    code_challenge_method: "S256",
    // Who has to show anew who they are has to do so there.
    ...((request.prompt === "login" || request.maxAgeS !== undefined) && { prompt: "login" }),
    ...(request.loginHint !== undefined && { login_hint: request.loginHint }),
  });
  // One way at a time: both together may be more than a cookie holds.
  const { mail: _, ...withoutMail } = interaction;
  const next = { ...withoutMail, elsewhere: { provider: name, state, nonce, verifier } };
  return seeOther(url.href, { "set-cookie": keepInteraction(app, asked, next) });
}

/** GET /callback/{provider}: what the other provider says. */
export async function returnFromElsewhere(providers: Providers, app: App, asked: Asked, name: string): Promise<Answer> {
  const state = asked.query.get("state") ?? "";
  const interaction = readInteraction(app, asked.cookies, state.split(".")[0] ?? "");
  const begun = interaction?.elsewhere;
  const known = app.config.idpProviders.find(({ provider }) => provider === name);
  if (interaction === undefined || begun === undefined || known === undefined)
    return problemPage(app, 400, "This sign-in is over. Go back to the app and begin again.");
  if (begun.provider !== name || begun.state !== state)
    return problemPage(app, 400, "This answer belongs to another sign-in.");
  const provider = await reached(providers, app, interaction, known);
  const who = providerName(known);
  const calls = providers.run(app, () => claimsOf(provider, app, asked, begun));
  if (calls === undefined)
    return addressPage(app, interaction, `Too many sign-ins wait for ${who}. Try again in a moment.`, 503);
  const claims = await calls.catch((error: unknown) => {
    app.log.warn("another provider signed nobody in", { app: app.config.appId, error: codeOf(error) });
    return undefined;
  });
  if (claims === undefined || claims.sub.length > subjectMax)
    return addressPage(app, interaction, `${who} did not sign you in.`, 400);
  const email = claims["email"];
  const outcome = await finishElsewhere(app, asked, interaction, {
    provider: name,
    issuer: claims.iss,
    subject: claims.sub,
    email: typeof email === "string" ? email : undefined,
    emailVerified: claims["email_verified"] === true,
  });
  switch (outcome.kind) {
    case "done":
      return outcome.answer;
    case "second":
      return seeOther(`/sign-in/${interaction.id}/second`, {
        "set-cookie": keepInteraction(app, asked, outcome.next),
      });
    case "not verified":
      return addressPage(app, interaction, `${who} has not verified your address. Sign in by mail.`, 403);
    case "mail first":
      return addressPage(app, interaction, `Sign in by mail once; after that ${who} does.`, 403);
    case "closed":
      return addressPage(app, interaction, "Nobody with this address may sign in here.", 403);
  }
}

/** Throws Refused with a page, from which mail can be used instead. */
async function reached(
  providers: Providers,
  app: App,
  interaction: Interaction,
  known: IdentityProvider,
): Promise<Provider> {
  try {
    return await providers.of(app, known);
  } catch (error) {
    app.log.warn("another provider is away", {
      app: app.config.appId,
      provider: known.provider,
      error: codeOf(error),
    });
    throw new Refused(addressPage(app, interaction, `${providerName(known)} does not answer. Sign in by mail.`, 502));
  }
}

async function claimsOf(
  provider: Provider,
  app: App,
  { query }: Asked,
  { provider: name, state, nonce, verifier }: NonNullable<Interaction["elsewhere"]>,
): Promise<client.IDToken | undefined> {
  const url = new URL(callbackUrl(app, name));
  url.search = query.toString();
  const tokens = await client.authorizationCodeGrant(provider, url, {
    pkceCodeVerifier: verifier,
    expectedState: state,
    expectedNonce: nonce,
    idTokenExpected: true,
  });
  const claims = tokens.claims();
  if (claims === undefined || claims["email"] !== undefined) return claims;
  // Some put the address nowhere else (OpenID Connect Core section 5.4).
  const { email, email_verified } = await client.fetchUserInfo(provider, tokens.access_token, claims.sub);
  return { ...claims, ...(email !== undefined && { email, email_verified }) };
}

function codeOf(error: unknown): string {
  return error instanceof Error && "code" in error ? String(error.code) : "unknown";
}
