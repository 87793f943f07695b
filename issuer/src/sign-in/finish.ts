import { randomUUID, timingSafeEqual } from "node:crypto";
import { authSchema as s } from "@holdfast/common/auth-schema/names.ts";
import { passesSecondFactor } from "../account/second-factor.ts";
import type { App } from "../app.ts";
import { type Answer, type Asked, seeOther } from "../http/exchange.ts";
import { newAuthorizationCode } from "../protocol/authorization-code.ts";
import type { AuthorizeRequest } from "../protocol/authorize-request.ts";
import { writeCode } from "../protocol/exchange-code.ts";
import type { Rows } from "../store/database.ts";
import { type Linked, linkUser, type UpstreamUser } from "../upstream/link-user.ts";
import { forgetInteraction, type Interaction } from "./interaction.ts";
import { interactionHash } from "./mail-limits.ts";
import { mailSecretsOf } from "./mail-secrets.ts";
import { openSession, type Session } from "./session.ts";

const triesMax = 5;
const mailLifeMs = 15 * 60_000;
const secondWithinMs = 10 * 60_000;

/** Back to the client (RFC 6749 section 4.1.2, RFC 9207). */
export function answerClient(
  { config }: App,
  { redirectUri, state }: Pick<AuthorizeRequest, "redirectUri"> & { readonly state?: string | undefined },
  values: Readonly<Record<string, string>>,
  cookies: readonly string[] = [],
): Answer {
  const url = new URL(redirectUri);
  for (const [name, value] of Object.entries(values)) url.searchParams.append(name, value);
  if (state !== undefined) url.searchParams.append("state", state);
  url.searchParams.append("iss", config.issuerUrl);
  return seeOther(url.href, cookies.length > 0 ? { "set-cookie": cookies } : {});
}

/** Gives the client a code for a user who is signed in. */
export async function grantCode(
  app: App,
  request: AuthorizeRequest,
  session: Pick<Session, "id" | "userId">,
  cookies: readonly string[] = [],
): Promise<Answer> {
  const code = newAuthorizationCode(app.keys);
  await writeCode(app, code, request, session);
  return answerClient(app, request, { code }, cookies);
}

/** By what somebody shows that the mail reached them. */
export type Proof = { readonly code: string } | { readonly linkToken: string };

export type Finished =
  | { readonly kind: "done"; readonly answer: Answer }
  /** Another try may be left. */
  | { readonly kind: "wrong"; readonly next: Interaction }
  /** The second factor is to be shown, for this interaction. */
  | { readonly kind: "second"; readonly next: Interaction }
  /** A new mail is needed. */
  | { readonly kind: "over" };

/** Signs in whoever has the mail and the browser that asked for it. Of many at once one gets in. */
export async function finish(app: App, asked: Asked, interaction: Interaction, proof: Proof): Promise<Finished> {
  const { database, keys, config } = app;
  const { mail } = interaction;
  if (mail === undefined || (mail.tries ?? 0) >= triesMax || app.now() - (mail.at ?? app.now()) > mailLifeMs)
    return { kind: "over" };
  const secrets = mailSecretsOf(mail.id, keys);
  const isRight = "code" in proof ? isSame(proof.code, secrets.code) : isSame(proof.linkToken, secrets.linkToken);
  const which = [mail.id, interactionHash(interaction.id)];
  const isOpen = `id = $1 AND interaction_hash = $2 AND ended_at IS NULL AND expires_at > now() AND tries < ${triesMax}`;
  // The answer depends on the tries of this browser alone: a mail that was withheld has no row that counts them.
  const tries = (mail.tries ?? 0) + 1;
  const refused: Finished =
    tries >= triesMax ? { kind: "over" } : { kind: "wrong", next: { ...interaction, mail: { ...mail, tries } } };
  if (!isRight) {
    await database.rows(`UPDATE ${s}.login_tokens SET tries = tries + 1 WHERE ${isOpen}`, which);
    return refused;
  }
  const reached = await database.transaction(async (rows) => {
    const [won] = await rows<{ email: string }>(
      `UPDATE ${s}.login_tokens SET ended_at = now() WHERE ${isOpen} AND is_owed RETURNING email`,
      which,
    );
    if (won === undefined) return undefined;
    const [user] = config.signUpOpen
      ? await rows<{ id: string }>(
          `INSERT INTO ${s}.users (id, email, email_verified) VALUES ($1, $2, true)
           ON CONFLICT (email) DO UPDATE SET email_verified = true RETURNING id`,
          [randomUUID(), won.email],
        )
      : await rows<{ id: string }>(`UPDATE ${s}.users SET email_verified = true WHERE email = $1 RETURNING id`, [
          won.email,
        ]);
    return user && firstPassed(rows, asked, interaction, user.id, byMail);
  });
  if (reached === undefined) return "code" in proof ? refused : { kind: "over" };
  return passedOn(app, interaction, reached, byMail);
}

/** Signs in whoever another provider has signed in. */
export async function finishElsewhere(
  app: App,
  asked: Asked,
  interaction: Interaction,
  who: UpstreamUser,
): Promise<Passed | Exclude<Linked, { kind: "user" }>> {
  const reached = await app.database.transaction(async (rows) => {
    const linked = await linkUser(rows, who, app.config.signUpOpen);
    if (linked.kind !== "user") return linked;
    return firstPassed(rows, asked, interaction, linked.userId, byProvider);
  });
  return "kind" in reached ? reached : passedOn(app, interaction, reached, byProvider);
}

/** What tokens say of how a user was recognised (RFC 8176; `fed` is what others call it). */
const byMail = ["otp"] as const;
const byProvider = ["fed"] as const;

type Passed = Extract<Finished, { kind: "done" | "second" }>;

interface FirstPassed {
  readonly userId: string;
  /** Undefined where the second factor is still to be shown. */
  readonly session: OpenedSession | undefined;
}

async function firstPassed(
  rows: Rows,
  asked: Asked,
  interaction: Interaction,
  userId: string,
  amr: readonly string[],
): Promise<FirstPassed> {
  const factor = await rows(`SELECT FROM ${s}.mfa_totp WHERE user_id = $1 AND confirmed_at IS NOT NULL`, [userId]);
  if (factor.length > 0) return { userId, session: undefined };
  return { userId, session: await signedIn(rows, asked, interaction, userId, amr) };
}

async function passedOn(
  app: App,
  interaction: Interaction,
  { userId, session }: FirstPassed,
  amr: readonly string[],
): Promise<Passed> {
  if (session === undefined)
    return { kind: "second", next: { ...interaction, passed: { userId, at: app.now(), amr } } };
  return { kind: "done", answer: await backToClient(app, interaction, session) };
}

/** Signs in whoever has shown the mail, by the second factor. */
export async function finishSecond(app: App, asked: Asked, interaction: Interaction, typed: string): Promise<Finished> {
  const { passed } = interaction;
  if (passed === undefined || app.now() - passed.at > secondWithinMs) return { kind: "over" };
  if (!(await passesSecondFactor(app, passed.userId, typed))) return { kind: "wrong", next: interaction };
  const session = await app.database.transaction((rows) =>
    signedIn(rows, asked, interaction, passed.userId, [...new Set([...passed.amr, "otp", "mfa"])]),
  );
  return { kind: "done", answer: await backToClient(app, interaction, session) };
}

type OpenedSession = Awaited<ReturnType<typeof openSession>>;

async function signedIn(
  rows: Rows,
  asked: Asked,
  { request }: Interaction,
  userId: string,
  amr: readonly string[],
): Promise<OpenedSession> {
  const opened = await openSession(rows, asked, userId, amr);
  await rows(`UPDATE ${s}.users SET last_sign_in_at = now() WHERE id = $1`, [userId]);
  await rows(
    `INSERT INTO ${s}.events (type, user_id, client_id, ip, user_agent) VALUES ('user.signed_in', $1, $2, $3, $4)`,
    [userId, request.clientId, asked.source, asked.userAgent],
  );
  return opened;
}

/** With a code for the client; to the account, where no client asked. */
async function backToClient(app: App, interaction: Interaction, session: OpenedSession): Promise<Answer> {
  const cookies = [session.cookie, forgetInteraction(interaction)];
  const { request } = interaction;
  if (request.clientId === "") return seeOther(request.redirectUri, { "set-cookie": cookies });
  return grantCode(app, request, session, cookies);
}

function isSame(given: string, right: string): boolean {
  const [a, b] = [Buffer.from(given), Buffer.from(right)];
  return a.length === b.length && timingSafeEqual(a, b);
}
