import { normalizedAddress } from "@holdfast/common/auth-schema/names.ts";
import type { App } from "../app.ts";
import { inEvenTime } from "../http/even-time.ts";
import { type Answer, type Asked, Refused, seeOther } from "../http/exchange.ts";
import { html } from "../http/html.ts";
import type { Providers } from "../upstream/provider.ts";
import { providerName } from "../upstream/provider-name.ts";
import { isAddress } from "./address.ts";
import { finish, finishSecond, type Proof } from "./finish.ts";
import { type Interaction, interactionOfMail, keepInteraction, readInteraction } from "./interaction.ts";
import { askForMail } from "./mail-limits.ts";
import { typedCode } from "./mail-secrets.ts";
import type { MailLimited } from "./mail-watch.ts";
import { requireOwnForm } from "./own-form.ts";
import { page, problemPage } from "./page.ts";

export interface Step {
  readonly app: App;
  readonly asked: Asked;
  readonly id: string;
  /** Sends a mail that is owed, after the answer. */
  readonly send: (mailId: string) => void;
  /** Reports that the app is at its limit of mails. */
  readonly limited: (limit: MailLimited) => void;
  readonly providers: Providers;
}

const over = "This sign-in is over. Go back to the app and begin again.";

/** Throws Refused where the browser has none of this id. */
export function stepInteraction({ app, asked, id }: Step): Interaction {
  const interaction = readInteraction(app, asked.cookies, id);
  if (interaction !== undefined) return interaction;
  throw new Refused(problemPage(app, 400, over));
}

/** GET /sign-in/{id}: who are you? */
export function askAddress(step: Step): Answer {
  return addressPage(step.app, stepInteraction(step));
}

/** Where a sign-in begins: by mail, or with another provider. */
export function addressPage(app: App, interaction: Interaction, problem = "", status = 200): Answer {
  return page(app, {
    status,
    title: "Sign in",
    leadsTo: interaction.request.redirectUri,
    body: html`<form method="post" action="/sign-in/${interaction.id}">
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
      html`<li><a class="button" href="/sign-in/${interaction.id}/with-${each.provider}">Continue with ${providerName(each)}</a></li>`,
  )}</ul>`
}`,
  });
}

/** POST /sign-in/{id}: a mail is owed. The answer is the same for every address. */
export async function takeAddress(step: Step): Promise<Answer> {
  const { app, asked, send, limited } = step;
  requireOwnForm(app, asked);
  const interaction = stepInteraction(step);
  const email = normalizedAddress(asked.form.get("email") ?? "");
  if (!isAddress(email)) return addressPage(app, interaction, "This is no e-mail address.", 400);
  if (!app.mailPace.admits(email, asked.address))
    return addressPage(app, interaction, "Too many mails were asked for. Wait a while, then try again.", 429);
  const mail = await inEvenTime(app.monotonicMs, () =>
    askForMail(app, { email, interactionId: interaction.id, source: asked.source, isShared: asked.isShared }),
  );
  if (mail.kind === "tooMany") limited({ forUsers: true });
  else if (mail.isCrowded) limited({ forUsers: false });
  if (mail.kind === "tooMany")
    return addressPage(app, interaction, "This app sends no more mails for a while. Try again later.", 429);
  if (mail.kind === "sent") send(mail.id);
  const { isCrowded } = mail;
  const before = interaction.mail?.email === email ? interaction.mail : undefined;
  // One mail that was sent goes on to count where the next one is withheld.
  const known = mail.kind === "withheld" && before !== undefined ? before : { id: mail.id, at: app.now() };
  const { elsewhere: _, request, ...here } = interaction;
  const { loginHint: __, ...without } = request;
  const next: Interaction = { ...here, request: without, mail: { ...known, email, ...(isCrowded && { isCrowded }) } };
  return seeOther(`/sign-in/${interaction.id}/code`, { "set-cookie": keepInteraction(app, asked, next) });
}

/** GET /sign-in/{id}/code: what does the mail say? */
export function askCode(step: Step): Answer {
  const interaction = stepInteraction(step);
  return interaction.mail === undefined ? seeOther(`/sign-in/${interaction.id}`) : codePage(step.app, interaction);
}

function codePage(app: App, interaction: Interaction, problem = "", status = 200): Answer {
  return page(app, {
    status,
    title: "Look at your mail",
    leadsTo: interaction.request.redirectUri,
    body: html`<p>A mail is on its way to ${interaction.mail?.email ?? ""}, if this address may sign in here. An address gets one in 30 seconds, and five in an hour.</p>
${interaction.mail?.isCrowded === true && html`<p>This app has many new users now: an address that never signed in here gets no mail for a while.</p>`}
<form method="post" action="/sign-in/${interaction.id}/code">
<label for="code">Code of 6 digits</label>
${problem !== "" && html`<p class="bad" id="problem" role="alert">${problem}</p>`}
<input type="text" id="code" name="code" inputmode="numeric" autocomplete="one-time-code" required maxlength="20"${problem !== "" && html` aria-describedby="problem" aria-invalid="true"`}>
<button>Sign in</button>
</form>
<p><a href="/sign-in/${interaction.id}">Use another address, or send it again</a></p>`,
  });
}

/** POST /sign-in/{id}/code. */
export async function takeCode(step: Step): Promise<Answer> {
  const { app, asked } = step;
  requireOwnForm(app, asked);
  const interaction = stepInteraction(step);
  return finished(step, interaction, { code: typedCode(asked.form.get("code") ?? "") });
}

/** GET and HEAD /link: programs that read mails open links too, so nothing is used up by that. */
export function askLink(app: App, asked: Asked): Answer {
  const mail = asked.query.get("mail") ?? "";
  const interaction = interactionOfMail(app, asked.cookies, mail);
  if (interaction === undefined)
    return page(app, {
      title: "Go back to where you began",
      body: html`<p>This browser is not the one where you began to sign in. Type the code from the mail there.</p>`,
    });
  return page(app, {
    title: "Sign in",
    leadsTo: interaction.request.redirectUri,
    body: html`<form method="post" action="/link">
<input type="hidden" name="mail" value="${mail}">
<input type="hidden" name="token" value="${asked.query.get("token") ?? ""}">
<button>Sign in as ${interaction.mail?.email ?? ""}</button>
</form>`,
  });
}

/** POST /link. */
export async function takeLink(app: App, asked: Asked): Promise<Answer> {
  requireOwnForm(app, asked);
  const interaction = interactionOfMail(app, asked.cookies, asked.form.get("mail") ?? "");
  if (interaction === undefined) throw new Refused(problemPage(app, 400, over));
  return finished({ app, asked }, interaction, { linkToken: asked.form.get("token") ?? "" });
}

async function finished(
  { app, asked }: Pick<Step, "app" | "asked">,
  interaction: Interaction,
  proof: Proof,
): Promise<Answer> {
  const outcome = await inEvenTime(app.monotonicMs, () => finish(app, asked, interaction, proof));
  if (outcome.kind === "done") return outcome.answer;
  if (outcome.kind === "second")
    return seeOther(`/sign-in/${interaction.id}/second`, { "set-cookie": keepInteraction(app, asked, outcome.next) });
  if (outcome.kind === "wrong") {
    const wrong = codePage(app, outcome.next, "This is not the code of the newest mail, or it is over.", 400);
    return { ...wrong, headers: { ...wrong.headers, "set-cookie": keepInteraction(app, asked, outcome.next) } };
  }
  return addressPage(app, interaction, "The mail is over or was used. Have another one sent.", 400);
}

/** GET /sign-in/{id}/second: the code of an app. */
export function askSecond(step: Step): Answer {
  const interaction = stepInteraction(step);
  return interaction.passed === undefined ? seeOther(`/sign-in/${interaction.id}`) : secondPage(step.app, interaction);
}

function secondPage(app: App, interaction: Interaction, problem = "", status = 200): Answer {
  return page(app, {
    status,
    title: "Second factor",
    leadsTo: interaction.request.redirectUri,
    body: html`<form method="post" action="/sign-in/${interaction.id}/second">
<label for="code">Code of your app, or a recovery code</label>
${problem !== "" && html`<p class="bad" id="problem" role="alert">${problem}</p>`}
<input type="text" id="code" name="code" autocomplete="one-time-code" required maxlength="40"${problem !== "" && html` aria-describedby="problem" aria-invalid="true"`}>
<button>Sign in</button>
</form>`,
  });
}

/** POST /sign-in/{id}/second. */
export async function takeSecond(step: Step): Promise<Answer> {
  const { app, asked } = step;
  requireOwnForm(app, asked);
  const interaction = stepInteraction(step);
  const outcome = await finishSecond(app, asked, interaction, typedCode(asked.form.get("code") ?? ""));
  if (outcome.kind === "done") return outcome.answer;
  if (outcome.kind === "wrong") return secondPage(app, interaction, "This is not a code, or it was used.", 400);
  return addressPage(app, interaction, "This took too long. Begin again.", 400);
}
