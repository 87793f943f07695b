import { type App, clientOf } from "../app.ts";
import { type Answer, type Asked, seeOther } from "../http/exchange.ts";
import { answerClient, grantCode } from "../sign-in/finish.ts";
import { keepInteraction, newInteraction } from "../sign-in/interaction.ts";
import { problemPage } from "../sign-in/page.ts";
import { currentSession, type Session } from "../sign-in/session.ts";
import { type AuthorizeRequest, knownParameters, readAuthorize } from "./authorize-request.ts";

/** GET or POST /authorize (OpenID Connect Core section 3.1.2). */
export async function authorize(app: App, asked: Asked): Promise<Answer> {
  const given = asked.method === "POST" ? asked.form : asked.query;
  const read = readAuthorize(given, (id) => clientOf(app, id));
  if (!read.ok && "shown" in read) return problemPage(app, 400, read.shown);
  if (!read.ok) return answerClient(app, read, { error: read.error, error_description: read.description });
  const { request } = read;
  // Forms of other sites come without our cookies: as a GET it has them, so that they stay few and a session is found.
  if (asked.method === "POST") return seeOther(`/authorize?${knownParameters(given).toString()}`);
  const hint = await hintedUser(app, request);
  if (!hint.isValid)
    return answerClient(app, request, {
      error: "invalid_request",
      error_description: "id_token_hint is no token of ours",
    });
  const session = await currentSession(app, asked);
  if (session !== undefined && isEnough(session, request, hint.userId, app.now()))
    return grantCode(app, request, session);
  if (request.prompt === "none")
    return answerClient(app, request, { error: "login_required", error_description: "nobody is signed in as asked" });
  const interaction = newInteraction(request, app.now());
  return seeOther(`/sign-in/${interaction.id}`, {
    "set-cookie": keepInteraction(app, asked, withoutHint(interaction)),
  });
}

/** Is whoever is signed in the one that is meant, and has been for no longer than asked? */
function isEnough(
  session: Session,
  { prompt, maxAgeS }: AuthorizeRequest,
  hinted: string | undefined,
  now: number,
): boolean {
  if (prompt === "login" || (hinted !== undefined && hinted !== session.userId)) return false;
  return maxAgeS === undefined || now - session.authTime.getTime() <= maxAgeS * 1_000;
}

/** The user of an ID token of ours, however old; without a hint it is any. */
async function hintedUser(
  { tokens }: App,
  { idTokenHint }: AuthorizeRequest,
): Promise<{ readonly isValid: boolean; readonly userId?: string }> {
  if (idTokenHint === undefined) return { isValid: true };
  const userId = (await tokens.verify(idTokenHint, "JWT", { evenOver: true }))?.sub;
  return userId === undefined ? { isValid: false } : { isValid: true, userId };
}

/** It was looked at, and is too long for a cookie. */
function withoutHint<I extends { readonly request: AuthorizeRequest }>(interaction: I): I {
  const { idTokenHint: _, ...request } = interaction.request;
  return { ...interaction, request };
}
