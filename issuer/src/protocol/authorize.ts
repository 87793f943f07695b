import { type App, clientOf } from "../app.ts";
import { type OutgoingResponse, type IncomingRequest, seeOther } from "../http/messages.ts";
import { redirectToClient, grantCode } from "../sign-in/complete-sign-in.ts";
import { saveInteraction, newInteraction, stepPath } from "../sign-in/interaction.ts";
import { problemPage } from "../sign-in/page.ts";
import { currentSession, satisfies } from "../sign-in/session.ts";
import { type AuthorizeRequest, supportedParameters, readAuthorize } from "./authorize-request.ts";

/** GET or POST /authorize (OpenID Connect Core section 3.1.2). */
export async function authorize(app: App, incoming: IncomingRequest): Promise<OutgoingResponse> {
  const parameters = incoming.method === "POST" ? incoming.form : incoming.query;
  const read = readAuthorize(parameters, (id) => clientOf(app, id));
  if (!read.ok && "userMessage" in read) return problemPage(app, 400, read.userMessage);
  if (!read.ok) return redirectToClient(app, read, { error: read.error, error_description: read.description });
  const { request } = read;
  // A cross-site POST has no cookies of the issuer. The GET has them, so the session is found and cookies are limited.
  if (incoming.method === "POST") return seeOther(`/authorize?${supportedParameters(parameters).toString()}`);
  const hint = await hintedUser(app, request);
  if (!hint.isValid)
    return redirectToClient(app, request, {
      error: "invalid_request",
      error_description: "id_token_hint is not a token of this issuer",
    });
  const session = await currentSession(app, incoming);
  if (session !== undefined && satisfies(session, request, { userId: hint.userId, now: app.now() }))
    return grantCode(app, request, session);
  if (request.prompt === "none")
    return redirectToClient(app, request, {
      error: "login_required",
      error_description: "no matching user is signed in",
    });
  // The hint was verified, and is too long for a cookie.
  const { idTokenHint: _, ...withoutHint } = request;
  const interaction = {
    ...newInteraction(withoutHint, app.now()),
    ...(hint.userId !== undefined && { hintedUserId: hint.userId }),
  };
  return seeOther(stepPath(app, interaction), { "set-cookie": saveInteraction(app, incoming, interaction) });
}

/** The user of the ID token hint, which may be expired; without a hint any user is valid. */
async function hintedUser(
  { tokens }: App,
  { idTokenHint }: AuthorizeRequest,
): Promise<{ readonly isValid: boolean; readonly userId?: string }> {
  if (idTokenHint === undefined) return { isValid: true };
  const userId = (await tokens.verify(idTokenHint, "JWT", { allowExpired: true }))?.sub;
  return userId === undefined ? { isValid: false } : { isValid: true, userId };
}
