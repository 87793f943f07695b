import { type App, clientOf } from "../app.ts";
import { type OutgoingResponse, type IncomingRequest, Refused, seeOther } from "../http/messages.ts";
import { html } from "../http/html.ts";
import { page, problemPage } from "../sign-in/page.ts";
import { requireSameOrigin } from "../sign-in/same-origin.ts";
import { clearedSessionCookie, endSession, openSessionId } from "../sign-in/session.ts";

/**
 * GET or POST /logout (OpenID Connect RP-Initiated Logout 1.0). An ID token of the session ends it immediately;
 * otherwise the user confirms, so that other sites cannot sign users out. The user is redirected to a registered
 * address only; for any other address a page says that the app did not register it.
 */
export async function logout(app: App, incoming: IncomingRequest): Promise<OutgoingResponse> {
  const parameters = incoming.method === "POST" ? incoming.form : incoming.query;
  const hint = parameters.get("id_token_hint");
  const named = parameters.get("client_id");
  const verified = hint === null ? undefined : await app.tokens.verify(hint, "JWT", { allowExpired: true });
  const claims = named === null || named === verified?.aud ? verified : undefined;
  // A token that is invalid, or of another client, proves no client to return to, but the user still signs out.
  const isContradictory = hint !== null && claims === undefined;
  const clientId = typeof claims?.aud === "string" ? claims.aud : isContradictory ? undefined : (named ?? undefined);
  const client = clientOf(app, clientId);
  const requested = parameters.get("post_logout_redirect_uri");
  const target = requested !== null && client?.postLogoutRedirectUris.includes(requested) === true ? requested : null;
  const isUnregistered = (requested !== null && target === null) || parameters.get("unregistered") === "yes";
  const state = parameters.get("state");
  const sessionId = await openSessionId(app, incoming);
  const isAuthorized = claims !== undefined && (sessionId === undefined || claims["sid"] === sessionId);
  const isConfirmed = incoming.method === "POST" && incoming.form.get("confirmed") === "yes";
  if (isConfirmed) requireSameOrigin(app, incoming);
  if (!isAuthorized && !isConfirmed && sessionId !== undefined)
    return page(app, {
      title: "Sign out?",
      ...(target !== null && { formTarget: target }),
      body: html`<form method="post" action="/logout">
<input type="hidden" name="confirmed" value="yes">
${clientId !== undefined && html`<input type="hidden" name="client_id" value="${clientId}">`}
${target !== null && html`<input type="hidden" name="post_logout_redirect_uri" value="${target}">`}
${state !== null && html`<input type="hidden" name="state" value="${state}">`}
${isUnregistered && html`<input type="hidden" name="unregistered" value="yes">`}
<button>Sign out</button>
</form>`,
    });
  const ended = typeof claims?.["sid"] === "string" ? claims["sid"] : sessionId;
  if (ended !== undefined) await endSession(app, ended);
  const cookies = { "set-cookie": [clearedSessionCookie()] };
  if (target === null) {
    return page(app, {
      title: "You are signed out",
      body: isUnregistered
        ? html`<p>The app that sent you here gave a return address that it did not register, so this page does not return you to it. You can close this page.</p>`
        : html`<p>You can close this page.</p>`,
      cookies: [clearedSessionCookie()],
    });
  }
  const url = URL.parse(target);
  if (url === null) throw new Refused(problemPage(app, 400, "The address is invalid."));
  if (state !== null) url.searchParams.append("state", state);
  return seeOther(url.href, cookies);
}
