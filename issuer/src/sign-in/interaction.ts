import { randomBytes } from "node:crypto";
import type { App } from "../app.ts";
import { setCookie } from "../http/cookie.ts";
import type { Asked } from "../http/exchange.ts";
import type { AuthorizeRequest } from "../protocol/authorize-request.ts";
import { seal, unseal } from "../sealed-text.ts";

/** A sign-in that is under way in one tab: it is in a sealed cookie of the browser, and nowhere else. */
export interface Interaction {
  readonly id: string;
  readonly request: AuthorizeRequest;
  readonly beganAt: number;
  /** The mail that is out; absent before. */
  readonly mail?: { readonly id: string; readonly email: string };
  /** What another provider is to answer; absent before anybody went there. */
  readonly elsewhere?: {
    readonly provider: string;
    readonly state: string;
    readonly nonce: string;
    readonly verifier: string;
  };
  /** Who has shown the mail, or came from another provider, and still has to show the second factor. */
  readonly passed?: { readonly userId: string; readonly at: number; readonly amr: readonly string[] };
}

const prefix = "__Host-sign-in-";
const lifeS = 3_600;
/** Tabs of one browser; the oldest is forgotten. */
const most = 5;
const idForm = /^[A-Za-z0-9_-]{16}$/;

export function newInteraction(request: AuthorizeRequest, now: number): Interaction {
  return { id: randomBytes(12).toString("base64url"), request, beganAt: now };
}

/** The headers that keep an interaction in the browser, and forget those that are too many. */
export function keepInteraction(app: App, { cookies }: Asked, interaction: Interaction): string[] {
  const others = [...cookies.keys()]
    .filter((name) => name.startsWith(prefix) && name !== `${prefix}${interaction.id}`)
    .flatMap((name) => {
      const found = readInteraction(app, cookies, name.slice(prefix.length));
      return [{ name, beganAt: found?.beganAt ?? 0 }];
    })
    .toSorted((a, b) => b.beganAt - a.beganAt);
  const forgotten = others.filter(({ beganAt }, index) => beganAt === 0 || index >= most - 1);
  const sealed = seal(app.keys.sealingKey("interaction"), JSON.stringify(interaction), interaction.id);
  return [
    setCookie(`${prefix}${interaction.id}`, sealed, lifeS),
    ...forgotten.map(({ name }) => setCookie(name, "", 0)),
  ];
}

export function forgetInteraction({ id }: Interaction): string {
  return setCookie(`${prefix}${id}`, "", 0);
}

/** The one that a mail was sent for, in whichever tab. */
export function interactionOfMail(
  app: Pick<App, "keys" | "now">,
  cookies: Asked["cookies"],
  mailId: string,
): Interaction | undefined {
  for (const name of cookies.keys()) {
    const found = name.startsWith(prefix) ? readInteraction(app, cookies, name.slice(prefix.length)) : undefined;
    if (found?.mail?.id === mailId) return found;
  }
  return undefined;
}

/** Undefined where the browser has none of this id, and when it is over. */
export function readInteraction(
  { keys, now }: Pick<App, "keys" | "now">,
  cookies: Asked["cookies"],
  id: string,
): Interaction | undefined {
  const sealed = cookies.get(`${prefix}${id}`);
  if (sealed === undefined || !idForm.test(id)) return undefined;
  const plain = unseal(keys.sealingKey("interaction"), sealed, id);
  if (plain === undefined) return undefined;
  const interaction = JSON.parse(plain) as Interaction;
  return interaction.beganAt + lifeS * 1_000 > now() ? interaction : undefined;
}
