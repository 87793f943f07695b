import { type App, clientOf } from "../app.ts";
import { type OutgoingResponse, type IncomingRequest, Refused, seeOther } from "../http/messages.ts";
import { html } from "../http/html.ts";
import { page, problemPage } from "../sign-in/page.ts";
import { requireSameOrigin } from "../sign-in/same-origin.ts";
import { currentSession, endSession, clearedSessionCookie } from "../sign-in/session.ts";

/**
 * GET or POST /logout (OpenID Connect RP-Initiated Logout 1.0). An ID token of the session ends it immediately;
 * otherwise the user confirms, so that other sites cannot sign users out.
 */
export async function logout(app: App, incoming: IncomingRequest): Promise<OutgoingResponse> {
  const parameters = incoming.method === "POST" ? incoming.form : incoming.query;
  const hint = parameters.get("id_token_hint");
  const claims = hint === null ? undefined : await app.tokens.verify(hint, "JWT", { allowExpired: true });
  const clientId = typeof claims?.aud === "string" ? claims.aud : (parameters.get("client_id") ?? undefined);
  const client = clientOf(app, clientId);
  const named = parameters.get("client_id");
  if ((hint !== null && claims === undefined) || (named !== null && named !== clientId))
    return problemPage(app, 400, "The app that sent you here gave a token that is not valid.");
  const target = parameters.get("post_logout_redirect_uri");
  if (target !== null && client?.postLogoutRedirectUris.includes(target) !== true)
    return problemPage(app, 400, "The app that sent you here gave an address that it did not register.");
  const state = parameters.get("state");
  const session = await currentSession(app, incoming);
  const isAuthorized = claims !== undefined && (session === undefined || claims["sid"] === session.id);
  const isConfirmed = incoming.method === "POST" && incoming.form.get("confirmed") === "yes";
  if (isConfirmed) requireSameOrigin(app, incoming);
  if (!isAuthorized && !isConfirmed && session !== undefined)
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
  const cookies = { "set-cookie": [clearedSessionCookie()] };
  if (target === null) {
    return page(app, {
      title: "You are signed out",
      body: html`<p>You can close this page.</p>`,
      cookies: [clearedSessionCookie()],
    });
  }
  const url = URL.parse(target);
  if (url === null) throw new Refused(problemPage(app, 400, "The address is invalid."));
  if (state !== null) url.searchParams.append("state", state);
  return seeOther(url.href, cookies);
}
