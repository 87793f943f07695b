import { type App, clientOf } from "../app.ts";
import { type Answer, type Asked, Refused, seeOther } from "../http/exchange.ts";
import { html } from "../http/html.ts";
import { page, problemPage } from "../sign-in/page.ts";
import { requireOwnForm } from "../sign-in/own-form.ts";
import { currentSession, endSession, noSession } from "../sign-in/session.ts";

/**
 * GET or POST /logout (OpenID Connect RP-Initiated Logout 1.0). With an ID token of the session it ends at once; else the user
 * is asked, so that no other site signs people out.
 */
export async function logout(app: App, asked: Asked): Promise<Answer> {
  const given = asked.method === "POST" ? asked.form : asked.query;
  const hint = given.get("id_token_hint");
  const claims = hint === null ? undefined : await app.tokens.verify(hint, "JWT", { evenOver: true });
  const clientId = typeof claims?.aud === "string" ? claims.aud : (given.get("client_id") ?? undefined);
  const client = clientOf(app, clientId);
  const named = given.get("client_id");
  if ((hint !== null && claims === undefined) || (named !== null && named !== clientId))
    return problemPage(app, 400, "The app that sent you here gave a token that is not valid.");
  const target = given.get("post_logout_redirect_uri");
  if (target !== null && client?.postLogoutRedirectUris.includes(target) !== true)
    return problemPage(app, 400, "The app that sent you here gave an address that it did not register.");
  const state = given.get("state");
  const session = await currentSession(app, asked);
  const isSure = claims !== undefined && (session === undefined || claims["sid"] === session.id);
  const isConfirmed = asked.method === "POST" && asked.form.get("confirmed") === "yes";
  if (isConfirmed) requireOwnForm(app, asked);
  if (!isSure && !isConfirmed && session !== undefined)
    return page(app, {
      title: "Sign out?",
      ...(target !== null && { leadsTo: target }),
      body: html`<form method="post" action="/logout">
<input type="hidden" name="confirmed" value="yes">
${clientId !== undefined && html`<input type="hidden" name="client_id" value="${clientId}">`}
${target !== null && html`<input type="hidden" name="post_logout_redirect_uri" value="${target}">`}
${state !== null && html`<input type="hidden" name="state" value="${state}">`}
<button>Sign out</button>
</form>`,
    });
  const ended = typeof claims?.["sid"] === "string" ? claims["sid"] : session?.id;
  if (ended !== undefined) await endSession(app, ended);
  const cookies = { "set-cookie": [noSession()] };
  if (target === null) {
    return page(app, {
      title: "You are signed out",
      body: html`<p>You can close this page.</p>`,
      cookies: [noSession()],
    });
  }
  const url = URL.parse(target);
  if (url === null) throw new Refused(problemPage(app, 400, "The address is none."));
  if (state !== null) url.searchParams.append("state", state);
  return seeOther(url.href, cookies);
}
