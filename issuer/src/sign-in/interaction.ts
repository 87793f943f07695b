import { randomBytes } from "node:crypto";
import type { App } from "../app.ts";
import { setCookie } from "../http/cookie.ts";
import { type Asked, Refused } from "../http/exchange.ts";
import type { AuthorizeRequest } from "../protocol/authorize-request.ts";
import { seal, unseal } from "../sealed-text.ts";
import { problemPage } from "./page.ts";

/** A sign-in that is under way in one tab: it is in a sealed cookie of the browser, and nowhere else. */
export interface Interaction {
  readonly id: string;
  readonly request: AuthorizeRequest;
  readonly beganAt: number;
  /** The mail that was asked for; absent before. */
  readonly mail?: AskedForMail;
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

/** A mail as the browser knows it, whether it was sent or not. */
export interface AskedForMail {
  readonly id: string;
  readonly email: string;
  readonly at?: number;
  /** Wrong codes that this browser gave. */
  readonly tries?: number;
  /** New addresses got no mail then. */
  readonly isCrowded?: boolean;
}

const prefix = "__Host-sign-in-";
const lifeS = 3_600;
/** Tabs of one browser; the oldest is forgotten. */
const most = 5;
/**
 * Bytes of all of them in a request, and of all cookies: a request whose headers have more than 16 KiB is refused before anything of
 * it is read. Sites of the same parent domain may set cookies for this host too: ours make room for them, but for the newest.
 */
const bytesMax = 6_144;
const allBytesMax = 10_240;
/** Browsers drop a longer cookie. */
const cookieBytesMax = 4_096;
const idForm = /^[A-Za-z0-9_-]{16}$/;

export function newInteraction(request: AuthorizeRequest, now: number): Interaction {
  return { id: randomBytes(12).toString("base64url"), request, beganAt: now };
}

/** The headers that store an interaction in the browser, and remove those that are too many. */
export function keepInteraction(app: App, { cookies }: Asked, interaction: Interaction): string[] {
  const name = `${prefix}${interaction.id}`;
  const sealed = seal(app.keys.sealingKey("interaction"), JSON.stringify(interaction), interaction.id);
  if (bytesOf(name, sealed) > cookieBytesMax)
    throw new Refused(problemPage(app, 400, "This sign-in is longer than a browser keeps it."));
  const others = [...cookies.keys()]
    .filter((each) => isOurs(each) && each !== name)
    .map((each) => ({
      name: each,
      beganAt: readInteraction(app, cookies, each.slice(prefix.length))?.beganAt ?? 0,
      bytes: bytesOf(each, cookies.get(each) ?? ""),
    }))
    .toSorted((a, b) => b.beganAt - a.beganAt);
  const foreign = [...cookies].reduce((sum, [each, value]) => sum + (isOurs(each) ? 0 : bytesOf(each, value)), 0);
  const room = Math.min(bytesMax, allBytesMax - foreign);
  let bytes = bytesOf(name, sealed);
  const forgotten = others.filter((other, at) => {
    if (other.beganAt === 0 || at >= most - 1 || bytes + other.bytes > room) return true;
    bytes += other.bytes;
    return false;
  });
  return [setCookie(name, sealed, lifeS), ...forgotten.map((other) => setCookie(other.name, "", 0))];
}

const isOurs = (name: string) => name.startsWith(prefix);

/** As the header of a request has it. */
function bytesOf(name: string, value: string): number {
  return Buffer.byteLength(name) + Buffer.byteLength(value) + "=; ".length;
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
