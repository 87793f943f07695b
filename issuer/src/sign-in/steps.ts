import { setTimeout as delay } from "node:timers/promises";
import { normalizedAddress } from "@holdfast/common/auth-schema/names.ts";
import type { App } from "../app.ts";
import { type OutgoingResponse, type IncomingRequest, Refused, seeOther } from "../http/messages.ts";
import { html } from "../http/html.ts";
import { providerName, type Providers } from "../upstream/provider.ts";
import { isEmailAddress, type MailLimited, typedCode } from "./mail-sender.ts";
import { continueWithSession, completeSignIn, completeSecondFactor, type Proof } from "./complete-sign-in.ts";
import {
  type Interaction,
  interactionOfMail,
  saveInteraction,
  readInteraction,
  stepPath,
  withSealedState,
} from "./interaction.ts";
import { requestMail } from "./mail-limits.ts";
import { requireSameOrigin } from "./same-origin.ts";
import { page, problemPage } from "./page.ts";
import { mailRequester } from "./signed-in-browser.ts";

export interface Step {
  readonly app: App;
  readonly incoming: IncomingRequest;
  readonly id: string;
  /** Sends a pending mail after the response. */
  readonly send: (mailId: string) => void;
  /** Reports that the app has reached its limit of mails. */
  readonly reportLimit: (limit: MailLimited) => void;
  readonly providers: Providers;
}

const expiredMessage = "This sign-in has expired. Go back to the app and start again.";

/**
 * The interaction of the step. Throws Refused with an error page if the browser has no interaction with this id, and
 * with a redirect to the client if the user has signed in in another tab since.
 */
export async function stepInteraction({ app, incoming, id }: Step): Promise<Interaction> {
  const stored = readInteraction(app, incoming.cookies, id);
  if (stored === undefined) throw new Refused(problemPage(app, 400, expiredMessage));
  const interaction = withSealedState(app, stored, incoming.query.get("state") ?? "");
  const response = await continueWithSession(app, incoming, interaction);
  if (response !== undefined) throw new Refused(response);
  return interaction;
}

/** GET /sign-in/{id}: asks for the email address. */
export async function getAddress(step: Step): Promise<OutgoingResponse> {
  return addressPage(step.app, await stepInteraction(step));
}

/** First page of a sign-in: by mail, or with an upstream provider. */
export function addressPage(app: App, interaction: Interaction, problem = "", status = 200): OutgoingResponse {
  return page(app, {
    status,
    title: "Sign in",
    formTarget: interaction.request.redirectUri,
    body: html`<form method="post" action="${stepPath(app, interaction)}">
<label for="email">E-mail address</label>
${problem !== "" && html`<p class="bad" id="problem" role="alert">${problem}</p>`}
<input type="email" id="email" name="email" autocomplete="email" required maxlength="254" value="${interaction.request.loginHint ?? ""}"${problem !== "" && html` aria-describedby="problem" aria-invalid="true"`}>
<button>Send me a code</button>
</form>
<p>You get a mail with a code and a link. There is no password.</p>
${
  app.config.idpProviders.length > 0 &&
  html`<ul class="others">${app.config.idpProviders.map(
    (each) =>
      html`<li><a class="button" href="${stepPath(app, interaction, `/with-${each.provider}`)}">Continue with ${providerName(each)}</a></li>`,
  )}</ul>`
}`,
  });
}

/** POST /sign-in/{id}: requests a mail. The response is the same for every address. */
export async function postAddress(step: Step): Promise<OutgoingResponse> {
  const { app, incoming, send, reportLimit } = step;
  requireSameOrigin(app, incoming);
  const interaction = await stepInteraction(step);
  const email = normalizedAddress(incoming.form.get("email") ?? "");
  if (!isEmailAddress(email)) return addressPage(app, interaction, "This is not an email address.", 400);
  const requester = mailRequester(app.keys, incoming, email);
  if (!app.mailRateLimit.admits(email, requester))
    return addressPage(app, interaction, "Too many mails were requested. Try again in a few minutes.", 429);
  const mail = await inQuantizedTime(app.monotonicMs, () =>
    requestMail(app, { email, interactionId: interaction.id, requester }),
  );
  if (mail.kind === "tooMany") reportLimit({ forUsers: true });
  else if (mail.newUsersLimited) reportLimit({ forUsers: false });
  if (mail.kind === "tooMany")
    return addressPage(app, interaction, "This app has sent too many mails in this hour. Try again later.", 429);
  if (mail.kind === "sent") send(mail.id);
  const previous = interaction.mail?.email === email ? interaction.mail : undefined;
  // A mail that was sent remains valid if the next one is withheld. Apart from the id, the state is the same for both.
  const mailId = mail.kind === "withheld" && previous !== undefined ? previous.id : mail.id;
  const { upstream: _, request, ...withoutUpstream } = interaction;
  const { loginHint: __, ...withoutHint } = request;
  const next: Interaction = {
    ...withoutUpstream,
    request: withoutHint,
    mail: { id: mailId, email, at: app.now() },
  };
  return seeOther(stepPath(app, interaction, "/code"), { "set-cookie": saveInteraction(app, incoming, next) });
}

/** GET /sign-in/{id}/code: asks for the code in the mail. */
export async function getCode(step: Step): Promise<OutgoingResponse> {
  const interaction = await stepInteraction(step);
  return interaction.mail === undefined ? seeOther(stepPath(step.app, interaction)) : codePage(step.app, interaction);
}

function codePage(app: App, interaction: Interaction, problem = "", status = 200): OutgoingResponse {
  return page(app, {
    status,
    title: "Check your mail",
    formTarget: interaction.request.redirectUri,
    body: html`<p>A mail is on its way to ${interaction.mail?.email ?? ""}, if this address may sign in here. You can request one mail every 30 seconds and five an hour. While an app has many new users, addresses that never signed in get none; try again later.</p>
<form method="post" action="${stepPath(app, interaction, "/code")}">
<label for="code">Code of 6 digits</label>
${problem !== "" && html`<p class="bad" id="problem" role="alert">${problem}</p>`}
<input type="text" id="code" name="code" inputmode="numeric" autocomplete="one-time-code" required maxlength="20"${problem !== "" && html` aria-describedby="problem" aria-invalid="true"`}>
<button>Sign in</button>
</form>
<p><a href="${stepPath(app, interaction)}">Use another address, or send it again</a></p>`,
  });
}

/** POST /sign-in/{id}/code: signs in with the code of the mail. */
export async function postCode(step: Step): Promise<OutgoingResponse> {
  const { app, incoming } = step;
  requireSameOrigin(app, incoming);
  const interaction = await stepInteraction(step);
  return finished(step, interaction, { code: typedCode(incoming.form.get("code") ?? "") });
}

/** GET and HEAD /link: asks for a confirmation. Mail scanners open links too, so the link is not used up. */
export function getLink(app: App, incoming: IncomingRequest): OutgoingResponse {
  const mail = incoming.query.get("mail") ?? "";
  const interaction = interactionOfMail(app, incoming.cookies, mail);
  if (interaction === undefined)
    return page(app, {
      title: "Go back to where you started",
      body: html`<p>You started to sign in with another browser. Type the code from the mail there.</p>`,
    });
  return page(app, {
    title: "Sign in",
    formTarget: interaction.request.redirectUri,
    body: html`<form method="post" action="/link">
<input type="hidden" name="mail" value="${mail}">
<input type="hidden" name="token" value="${incoming.query.get("token") ?? ""}">
<button>Sign in as ${interaction.mail?.email ?? ""}</button>
</form>`,
  });
}

/** POST /link: signs in with the link of the mail. */
export async function postLink(app: App, incoming: IncomingRequest): Promise<OutgoingResponse> {
  requireSameOrigin(app, incoming);
  const interaction = interactionOfMail(app, incoming.cookies, incoming.form.get("mail") ?? "");
  if (interaction === undefined) throw new Refused(problemPage(app, 400, expiredMessage));
  return finished({ app, incoming }, interaction, { linkToken: incoming.form.get("token") ?? "" });
}

async function finished(
  { app, incoming }: Pick<Step, "app" | "incoming">,
  interaction: Interaction,
  proof: Proof,
): Promise<OutgoingResponse> {
  const outcome = await inQuantizedTime(app.monotonicMs, () => completeSignIn(app, incoming, interaction, proof));
  if (outcome.kind === "done") return outcome.response;
  if (outcome.kind === "second")
    return seeOther(stepPath(app, interaction, "/second"), {
      "set-cookie": saveInteraction(app, incoming, outcome.next),
    });
  if (outcome.kind === "wrong") {
    const wrong = codePage(app, outcome.next, "This is not the code of the newest mail, or it has expired.", 400);
    return { ...wrong, headers: { ...wrong.headers, "set-cookie": saveInteraction(app, incoming, outcome.next) } };
  }
  return addressPage(app, interaction, "The mail has expired or was used. Request another one.", 400);
}

/** GET /sign-in/{id}/second: asks for a code of the authenticator app. */
export async function getSecondFactor(step: Step): Promise<OutgoingResponse> {
  const interaction = await stepInteraction(step);
  return interaction.firstFactor === undefined
    ? seeOther(stepPath(step.app, interaction))
    : secondFactorPage(step.app, interaction);
}

function secondFactorPage(app: App, interaction: Interaction, problem = "", status = 200): OutgoingResponse {
  return page(app, {
    status,
    title: "Second factor",
    formTarget: interaction.request.redirectUri,
    body: html`<form method="post" action="${stepPath(app, interaction, "/second")}">
<label for="code">Code from your authenticator app, or a recovery code</label>
${problem !== "" && html`<p class="bad" id="problem" role="alert">${problem}</p>`}
<input type="text" id="code" name="code" autocomplete="one-time-code" required maxlength="40"${problem !== "" && html` aria-describedby="problem" aria-invalid="true"`}>
<button>Sign in</button>
</form>`,
  });
}

/** POST /sign-in/{id}/second: signs in with a code of the authenticator app. */
export async function postSecondFactor(step: Step): Promise<OutgoingResponse> {
  const { app, incoming } = step;
  requireSameOrigin(app, incoming);
  const interaction = await stepInteraction(step);
  const outcome = await completeSecondFactor(app, incoming, interaction, typedCode(incoming.form.get("code") ?? ""));
  if (outcome.kind === "done") return outcome.response;
  if (outcome.kind === "wrong")
    return secondFactorPage(app, interaction, "This is not a valid code, or it was used before.", 400);
  return addressPage(app, interaction, "This took too long. Start again.", 400);
}

/** A time step. The work of a form, including its commit, takes less. */
const timeStepMs = 200;

/**
 * Runs work and delays its outcome to a multiple of a time step, so that the response time does not reveal whether a
 * user exists.
 */
async function inQuantizedTime<T>(monotonicMs: () => number, work: () => Promise<T>): Promise<T> {
  const startedMs = monotonicMs();
  try {
    return await work();
  } finally {
    await delay(timeStepMs - ((monotonicMs() - startedMs) % timeStepMs));
  }
}
