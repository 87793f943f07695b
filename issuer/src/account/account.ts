import { authSchema as s } from "@holdfast/common/auth-schema/names.ts";
import QRCode from "qrcode";
import type { App } from "../app.ts";
import { type Answer, type Asked, Refused, seeOther } from "../http/exchange.ts";
import { Html, html } from "../http/html.ts";
import { keepInteraction, newInteraction } from "../sign-in/interaction.ts";
import { typedCode } from "../sign-in/mail-secrets.ts";
import { requireOwnForm } from "../sign-in/own-form.ts";
import { page } from "../sign-in/page.ts";
import { currentSession, endSession, type Session } from "../sign-in/session.ts";
import { beginSecondFactor, confirmSecondFactor, hasSecondFactor, removeSecondFactor } from "./second-factor.ts";

/** What changes who gets in needs a sign-in of the last minutes. */
const freshMs = 10 * 60_000;

/** Who is signed in. Throws Refused that leads to a sign-in; a fresh one where that is needed. */
async function signedIn(app: App, asked: Asked, { fresh }: { fresh: boolean }): Promise<Session> {
  const session = await currentSession(app, asked);
  if (session !== undefined && (!fresh || app.now() - session.authTime.getTime() < freshMs)) return session;
  const request = {
    clientId: "",
    redirectUri: `${app.config.issuerUrl}/account`,
    scope: "openid",
    prompt: "",
  } as const;
  const interaction = newInteraction(request, app.now());
  throw new Refused(seeOther(`/sign-in/${interaction.id}`, { "set-cookie": keepInteraction(app, asked, interaction) }));
}

interface SessionRow {
  readonly id: string;
  readonly user_agent: string | null;
  readonly last_seen_at: Date;
}

/** GET /account: where somebody is signed in, and the second factor. */
export async function account(app: App, asked: Asked): Promise<Answer> {
  const session = await signedIn(app, asked, { fresh: false });
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
    ? html`<form method="post" action="/account/second-factor/remove"><p>Codes of an app are asked for at each sign-in.</p><button class="plain">Remove it</button></form>`
    : html`<form method="post" action="/account/second-factor"><p>Have codes of an app asked for at each sign-in.</p><button>Set it up</button></form>`
}`,
  });
}

/** POST /account/sessions/end. */
export async function endOneSession(app: App, asked: Asked): Promise<Answer> {
  requireOwnForm(app, asked);
  const session = await signedIn(app, asked, { fresh: false });
  const id = asked.form.get("session") ?? "";
  const own = await app.database.rows(`SELECT FROM ${s}.sessions WHERE id::text = $1 AND user_id = $2`, [
    id,
    session.userId,
  ]);
  if (own.length > 0) await endSession(app, id);
  return seeOther("/account");
}

/** POST /account/second-factor: a new secret, to be confirmed by a code of it. */
export async function addSecondFactor(app: App, asked: Asked): Promise<Answer> {
  requireOwnForm(app, asked);
  const session = await signedIn(app, asked, { fresh: true });
  const [user] = await app.database.rows<{ id: string; email: string }>(
    `SELECT id, email FROM ${s}.users WHERE id = $1`,
    [session.userId],
  );
  const begun = user && (await beginSecondFactor(app, user));
  if (begun === undefined) return seeOther("/account");
  const picture = new Html(await QRCode.toString(begun.uri, { type: "svg", margin: 4 }));
  return page(app, {
    title: "Set up codes of an app",
    body: html`<p>Scan this with the app, or type the key into it.</p>
<div class="picture">${picture}</div>
<p><code>${begun.secret}</code></p>
<form method="post" action="/account/second-factor/confirm">
<label for="code">Code that the app shows</label>
<input type="text" id="code" name="code" inputmode="numeric" autocomplete="one-time-code" required maxlength="20">
<button>Confirm</button>
</form>`,
  });
}

/** POST /account/second-factor/confirm: the recovery codes, once. */
export async function confirm(app: App, asked: Asked): Promise<Answer> {
  requireOwnForm(app, asked);
  const session = await signedIn(app, asked, { fresh: true });
  const codes = await confirmSecondFactor(app, session.userId, typedCode(asked.form.get("code") ?? ""));
  if (codes === undefined)
    return page(app, {
      status: 400,
      title: "This was not the code",
      body: html`<p>Wait for the next one, and <a href="/account">begin again</a>.</p>`,
    });
  return page(app, {
    title: "Keep your recovery codes",
    body: html`<p>Each signs you in once when you do not have the app. They are not shown again.</p>
<ul>${codes.map((code) => html`<li><code>${code}</code></li>`)}</ul>
<p><a href="/account">I have kept them</a></p>`,
  });
}

/** POST /account/second-factor/remove. */
export async function remove(app: App, asked: Asked): Promise<Answer> {
  requireOwnForm(app, asked);
  const session = await signedIn(app, asked, { fresh: true });
  await removeSecondFactor(app, session.userId);
  return seeOther("/account");
}
