import { authSchema as s } from "@holdfast/common/auth-schema/names.ts";
import QRCode from "qrcode";
import type { App } from "../app.ts";
import { type OutgoingResponse, type IncomingRequest, Refused, seeOther } from "../http/messages.ts";
import { Html, html } from "../http/html.ts";
import { saveInteraction, newInteraction } from "../sign-in/interaction.ts";
import { typedCode } from "../sign-in/mail-sender.ts";
import { requireSameOrigin } from "../sign-in/same-origin.ts";
import { page } from "../sign-in/page.ts";
import { currentSession, endSession, type Session } from "../sign-in/session.ts";
import { beginSecondFactor, confirmSecondFactor, hasSecondFactor, removeSecondFactor } from "./second-factor.ts";

/** Maximum age of a sign-in that may change sign-in methods. */
const maxSignInAgeMs = 10 * 60_000;

/** The current session. Throws Refused with a redirect to a sign-in without a session, or without a recent one. */
async function requireSession(
  app: App,
  incoming: IncomingRequest,
  { isRecent }: { isRecent: boolean },
): Promise<Session> {
  const session = await currentSession(app, incoming);
  if (session !== undefined && (!isRecent || app.now() - session.authTime.getTime() < maxSignInAgeMs)) return session;
  const request = {
    clientId: "",
    redirectUri: `${app.config.issuerUrl}/account`,
    scope: "openid",
    prompt: "",
    ...(isRecent && { maxAgeS: maxSignInAgeMs / 1_000 }),
  } as const;
  const interaction = newInteraction(request, app.now());
  throw new Refused(
    seeOther(`/sign-in/${interaction.id}`, { "set-cookie": saveInteraction(app, incoming, interaction) }),
  );
}

interface SessionRow {
  readonly id: string;
  readonly user_agent: string | null;
  readonly last_seen_at: Date;
}

/** GET /account: sessions and second factor of the user. */
export async function account(app: App, incoming: IncomingRequest): Promise<OutgoingResponse> {
  const session = await requireSession(app, incoming, { isRecent: false });
  const [user] = await app.database.rows<{ email: string }>(`SELECT email FROM ${s}.users WHERE id = $1`, [
    session.userId,
  ]);
  const sessions = await app.database.rows<SessionRow>(
    `SELECT id, user_agent, last_seen_at FROM ${s}.sessions
     WHERE user_id = $1 AND revoked_at IS NULL AND expires_at > now() ORDER BY last_seen_at DESC LIMIT 50`,
    [session.userId],
  );
  const hasFactor = await hasSecondFactor(app, session.userId);
  return page(app, {
    title: "Your account",
    body: html`<p>${user?.email ?? ""}</p>
<h2>Where you are signed in</h2>
<ul>${sessions.map(
      ({ id, user_agent: agent, last_seen_at: seen }) => html`<li><form method="post" action="/account/sessions/end">
<p>${agent ?? "A browser"}, ${seen.toISOString().slice(0, 10)}${id === session.id && " (this one)"}</p>
<input type="hidden" name="session" value="${id}"><button class="plain">Sign out there</button></form></li>`,
    )}</ul>
<h2>Second factor</h2>
${
  hasFactor
    ? html`<p>Each sign-in requires a code from your authenticator app.</p>${removalForm()}`
    : html`<form method="post" action="/account/second-factor"><p>Require a code from an authenticator app at each sign-in.</p><button>Set it up</button></form>`
}`,
  });
}

/** The form that removes the second factor. It needs a code of the factor, or a recovery code. */
function removalForm(problem = ""): Html {
  return html`<form method="post" action="/account/second-factor/remove">
<label for="code">Code from your authenticator app, or a recovery code</label>
${problem !== "" && html`<p class="bad" id="problem" role="alert">${problem}</p>`}
<input type="text" id="code" name="code" autocomplete="one-time-code" required maxlength="40"${problem !== "" && html` aria-describedby="problem" aria-invalid="true"`}>
<button class="plain">Remove it</button>
</form>`;
}

/** POST /account/sessions/end: ends one session of the user. */
export async function endOneSession(app: App, incoming: IncomingRequest): Promise<OutgoingResponse> {
  requireSameOrigin(app, incoming);
  const session = await requireSession(app, incoming, { isRecent: false });
  const id = incoming.form.get("session") ?? "";
  const ownSessions = await app.database.rows(`SELECT FROM ${s}.sessions WHERE id::text = $1 AND user_id = $2`, [
    id,
    session.userId,
  ]);
  if (ownSessions.length > 0) await endSession(app, id);
  return seeOther("/account");
}

/** POST /account/second-factor: creates a secret, which a code confirms. */
export async function addSecondFactor(app: App, incoming: IncomingRequest): Promise<OutgoingResponse> {
  requireSameOrigin(app, incoming);
  const session = await requireSession(app, incoming, { isRecent: true });
  const [user] = await app.database.rows<{ id: string; email: string }>(
    `SELECT id, email FROM ${s}.users WHERE id = $1`,
    [session.userId],
  );
  const created = user && (await beginSecondFactor(app, user));
  if (created === undefined) return seeOther("/account");
  const picture = new Html(await QRCode.toString(created.uri, { type: "svg", margin: 4 }));
  return page(app, {
    title: "Set up an authenticator app",
    body: html`<p>Scan this with your authenticator app, or type the key into it.</p>
<div class="picture">${picture}</div>
<p><code>${created.secret}</code></p>
<form method="post" action="/account/second-factor/confirm">
<label for="code">Code from your authenticator app</label>
<input type="text" id="code" name="code" inputmode="numeric" autocomplete="one-time-code" required maxlength="20">
<button>Confirm</button>
</form>`,
  });
}

/** POST /account/second-factor/confirm: shows the recovery codes once. */
export async function confirm(app: App, incoming: IncomingRequest): Promise<OutgoingResponse> {
  requireSameOrigin(app, incoming);
  const session = await requireSession(app, incoming, { isRecent: true });
  const codes = await confirmSecondFactor(app, session, typedCode(incoming.form.get("code") ?? ""));
  if (codes === undefined)
    return page(app, {
      status: 400,
      title: "The code is wrong",
      body: html`<p>Wait until the app shows the next code, and <a href="/account">start again</a>.</p>`,
    });
  return page(app, {
    title: "Keep your recovery codes",
    body: html`<p>Each code signs you in once when you do not have the app. The codes are not shown again.</p>
<ul>${codes.map((code) => html`<li><code>${code}</code></li>`)}</ul>
<p><a href="/account">I have saved them</a></p>`,
  });
}

/** POST /account/second-factor/remove: removes the second factor, by one of its codes. */
export async function remove(app: App, incoming: IncomingRequest): Promise<OutgoingResponse> {
  requireSameOrigin(app, incoming);
  const session = await requireSession(app, incoming, { isRecent: true });
  if (await removeSecondFactor(app, session.userId, typedCode(incoming.form.get("code") ?? "")))
    return seeOther("/account");
  return page(app, {
    status: 400,
    title: "Second factor",
    body: removalForm("This is not a valid code, or it was used before."),
  });
}
