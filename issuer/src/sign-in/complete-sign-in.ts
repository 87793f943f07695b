import { randomUUID, timingSafeEqual } from "node:crypto";
import { authSchema as s } from "@holdfast/common/auth-schema/names.ts";
import { passesSecondFactor } from "../account/second-factor.ts";
import type { App } from "../app.ts";
import { html } from "../http/html.ts";
import { type OutgoingResponse, type IncomingRequest, seeOther } from "../http/messages.ts";
import { newAuthorizationCode, writeCode } from "../protocol/exchange-code.ts";
import type { AuthorizeRequest } from "../protocol/authorize-request.ts";
import type { Rows } from "../store/database.ts";
import { type Linked, linkUser, type UpstreamUser } from "../upstream/link-user.ts";
import { clearInteraction, type Interaction } from "./interaction.ts";
import { interactionHash } from "./mail-limits.ts";
import { mailSecretsOf } from "./mail-sender.ts";
import { page } from "./page.ts";
import { currentSession, openSession, satisfies, type Session } from "./session.ts";
import { recordSignIn } from "./signed-in-browser.ts";

const maxAttempts = 5;
const mailLifetimeMs = 15 * 60_000;
const secondFactorTimeoutMs = 10 * 60_000;

/** Redirects to the client (RFC 6749 section 4.1.2, RFC 9207). */
export function redirectToClient(
  { config }: App,
  { redirectUri, state }: Pick<AuthorizeRequest, "redirectUri"> & { readonly state?: string | undefined },
  values: Readonly<Record<string, string>>,
  cookies: readonly string[] = [],
): OutgoingResponse {
  const url = new URL(redirectUri);
  for (const [name, value] of Object.entries(values)) url.searchParams.append(name, value);
  if (state !== undefined) url.searchParams.append("state", state);
  url.searchParams.append("iss", config.issuerUrl);
  return seeOther(url.href, cookies.length > 0 ? { "set-cookie": cookies } : {});
}

/** Redirects to the client with a code for a signed-in user. */
export async function grantCode(
  app: App,
  request: AuthorizeRequest,
  session: Pick<Session, "id" | "userId">,
  cookies: readonly string[] = [],
): Promise<OutgoingResponse> {
  const code = newAuthorizationCode(app.keys);
  await writeCode(app, code, request, session);
  return redirectToClient(app, request, { code }, cookies);
}

/** Proof that the mail reached the user. */
export type Proof = { readonly code: string } | { readonly linkToken: string };

export type SignInOutcome =
  | { readonly kind: "done"; readonly response: OutgoingResponse }
  /** The proof was wrong; further attempts may remain. */
  | { readonly kind: "wrong"; readonly next: Interaction }
  /** The second factor is needed for this interaction. */
  | { readonly kind: "second"; readonly next: Interaction }
  /** The mail has expired or was used. */
  | { readonly kind: "expired" };

/**
 * Signs in the user who has the mail and the browser that requested it. Of several concurrent requests one succeeds.
 */
export async function completeSignIn(
  app: App,
  incoming: IncomingRequest,
  interaction: Interaction,
  proof: Proof,
): Promise<SignInOutcome> {
  const { database, keys, config } = app;
  const { mail } = interaction;
  if (mail === undefined || (mail.tries ?? 0) >= maxAttempts || app.now() - (mail.at ?? app.now()) > mailLifetimeMs)
    return { kind: "expired" };
  const secrets = mailSecretsOf(mail.id, keys);
  const isCorrect = "code" in proof ? isSame(proof.code, secrets.code) : isSame(proof.linkToken, secrets.linkToken);
  const rowKey = [mail.id, interactionHash(interaction.id)];
  const isOpen = `id = $1 AND interaction_hash = $2 AND ended_at IS NULL AND expires_at > now() AND tries < ${maxAttempts}`;
  // The response depends only on the attempts of this browser, since a withheld mail has no row to count them.
  const tries = (mail.tries ?? 0) + 1;
  const refused: SignInOutcome =
    tries >= maxAttempts ? { kind: "expired" } : { kind: "wrong", next: { ...interaction, mail: { ...mail, tries } } };
  if (!isCorrect) {
    await database.rows(`UPDATE ${s}.login_tokens SET tries = tries + 1 WHERE ${isOpen}`, rowKey);
    return refused;
  }
  const firstFactorResult = await database.transaction(async (rows) => {
    const [pendingMail] = await rows<{ email: string }>(
      `UPDATE ${s}.login_tokens SET ended_at = now() WHERE ${isOpen} AND is_owed RETURNING email`,
      rowKey,
    );
    if (pendingMail === undefined) return undefined;
    const [user] = config.signUpOpen
      ? await rows<{ id: string }>(
          `INSERT INTO ${s}.users (id, email, email_verified) VALUES ($1, $2, true)
           ON CONFLICT (email) DO UPDATE SET email_verified = true RETURNING id`,
          [randomUUID(), pendingMail.email],
        )
      : await rows<{ id: string }>(`UPDATE ${s}.users SET email_verified = true WHERE email = $1 RETURNING id`, [
          pendingMail.email,
        ]);
    return user && completeFirstFactor(app, rows, incoming, interaction, user.id, byMail);
  });
  if (firstFactorResult === undefined) return "code" in proof ? refused : { kind: "expired" };
  return continueSignIn(app, interaction, firstFactorResult, byMail);
}

/** Signs in a user of an upstream provider. */
export async function completeUpstreamSignIn(
  app: App,
  incoming: IncomingRequest,
  interaction: Interaction,
  upstreamUser: UpstreamUser,
): Promise<Passed | Exclude<Linked, { kind: "user" }>> {
  const firstFactorResult = await app.database.transaction(async (rows) => {
    const linked = await linkUser(rows, upstreamUser, app.config.signUpOpen);
    if (linked.kind !== "user") return linked;
    return completeFirstFactor(app, rows, incoming, interaction, linked.userId, byProvider);
  });
  return "kind" in firstFactorResult
    ? firstFactorResult
    : continueSignIn(app, interaction, firstFactorResult, byProvider);
}

/** Authentication methods in tokens (`amr`, RFC 8176; `fed` for federation is common, but not registered). */
const byMail = ["otp"] as const;
const byProvider = ["fed"] as const;

type Passed = Extract<SignInOutcome, { kind: "done" | "second" }>;

interface FirstFactorResult {
  readonly userId: string;
  /** The new session; undefined if the second factor is still needed. */
  readonly session: OpenedSession | undefined;
}

async function completeFirstFactor(
  app: App,
  rows: Rows,
  incoming: IncomingRequest,
  interaction: Interaction,
  userId: string,
  amr: readonly string[],
): Promise<FirstFactorResult> {
  const factor = await rows(`SELECT FROM ${s}.mfa_totp WHERE user_id = $1 AND confirmed_at IS NOT NULL`, [userId]);
  if (factor.length > 0) return { userId, session: undefined };
  return { userId, session: await signedIn(app, rows, incoming, interaction, userId, amr) };
}

async function continueSignIn(
  app: App,
  interaction: Interaction,
  { userId, session }: FirstFactorResult,
  amr: readonly string[],
): Promise<Passed> {
  if (session === undefined)
    return { kind: "second", next: { ...interaction, firstFactor: { userId, at: app.now(), amr } } };
  return { kind: "done", response: await backToClient(app, interaction, session, session.cookies) };
}

/** Completes a sign-in with the second factor. */
export async function completeSecondFactor(
  app: App,
  incoming: IncomingRequest,
  interaction: Interaction,
  typed: string,
): Promise<SignInOutcome> {
  const { firstFactor } = interaction;
  if (firstFactor === undefined || app.now() - firstFactor.at > secondFactorTimeoutMs) return { kind: "expired" };
  if (!(await passesSecondFactor(app, firstFactor.userId, typed))) return { kind: "wrong", next: interaction };
  const session = await app.database.transaction((rows) =>
    signedIn(app, rows, incoming, interaction, firstFactor.userId, [...new Set([...firstFactor.amr, "otp", "mfa"])]),
  );
  return { kind: "done", response: await backToClient(app, interaction, session, session.cookies) };
}

interface OpenedSession extends Session {
  /** Set-Cookie headers of the session and of the browser. */
  readonly cookies: readonly string[];
}

async function signedIn(
  { keys }: App,
  rows: Rows,
  incoming: IncomingRequest,
  { request }: Interaction,
  userId: string,
  amr: readonly string[],
): Promise<OpenedSession> {
  const { cookie, ...session } = await openSession(rows, incoming, userId, amr);
  const [user] = await rows<{ email: string; email_verified: boolean }>(
    `UPDATE ${s}.users SET last_sign_in_at = now() WHERE id = $1 RETURNING email, email_verified`,
    [userId],
  );
  await rows(
    `INSERT INTO ${s}.events (type, user_id, client_id, ip, user_agent) VALUES ('user.signed_in', $1, $2, $3, $4)`,
    [userId, request.clientId, incoming.source, incoming.userAgent],
  );
  const isProved = user?.email_verified === true;
  return { ...session, cookies: isProved ? [cookie, recordSignIn(keys, incoming.cookies, user.email)] : [cookie] };
}

/**
 * Redirects to the client with a code, or to the account page if no client started the sign-in. The link of a mail
 * lacks a long state of the client: the tab where the sign-in began has it, and continues with the session.
 */
async function backToClient(
  app: App,
  interaction: Interaction,
  session: Session,
  sessionCookies: readonly string[],
): Promise<OutgoingResponse> {
  const { request } = interaction;
  if (interaction.hasLongState === true && request.state === undefined)
    return page(app, {
      title: "You are signed in",
      body: html`<p>Go back to the tab where you started, and reload it.</p>`,
      cookies: sessionCookies,
    });
  const cookies = [...sessionCookies, clearInteraction(interaction)];
  if (request.clientId === "") return seeOther(request.redirectUri, { "set-cookie": cookies });
  return grantCode(app, request, session, cookies);
}

/**
 * Continues with a session of this browser that is newer than the page, such as one of another tab; undefined if there
 * is none that satisfies the request.
 */
export async function continueWithSession(
  app: App,
  incoming: IncomingRequest,
  interaction: Interaction,
): Promise<OutgoingResponse | undefined> {
  const session = await currentSession(app, incoming);
  if (session === undefined) return undefined;
  const { request, startedAt: requestedAt, hintedUserId: userId } = interaction;
  if (!satisfies(session, request, { userId, now: app.now(), requestedAt })) return undefined;
  return backToClient(app, interaction, session, []);
}

function isSame(presented: string, expected: string): boolean {
  const [a, b] = [Buffer.from(presented), Buffer.from(expected)];
  return a.length === b.length && timingSafeEqual(a, b);
}
