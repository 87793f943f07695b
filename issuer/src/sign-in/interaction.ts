import { randomBytes } from "node:crypto";
import { storedFormat } from "@holdfast/common/stored-names.ts";
import type { App } from "../app.ts";
import { type IncomingRequest, Refused, setCookie } from "../http/messages.ts";
import type { AuthorizeRequest } from "../protocol/authorize-request.ts";
import { seal, unseal } from "../sealed-text.ts";
import { problemPage } from "./page.ts";

/** A sign-in in progress in one browser tab. It is stored only in an encrypted cookie of that browser. */
export interface Interaction {
  readonly id: string;
  readonly request: AuthorizeRequest;
  /** Time of the client's request, in milliseconds since 1970. */
  readonly startedAt: number;
  /** The user of the ID token hint, the only one who may sign in; absent without a hint. */
  readonly hintedUserId?: string;
  /** True if the client's state is too long for the cookie: it is sealed in the paths of the steps instead. */
  readonly hasLongState?: boolean;
  /** The requested mail; absent before. */
  readonly mail?: RequestedMail;
  /** Expected response of an upstream provider; absent before the redirect. */
  readonly upstream?: {
    readonly provider: string;
    readonly state: string;
    readonly nonce: string;
    readonly verifier: string;
  };
  /** The user who passed the first factor and needs the second one. */
  readonly firstFactor?: { readonly userId: string; readonly at: number; readonly amr: readonly string[] };
}

/** A requested mail. The number and size of its fields do not reveal whether it was sent or withheld. */
export interface RequestedMail {
  readonly id: string;
  readonly email: string;
  readonly at?: number;
  /** Wrong codes that this browser sent. */
  readonly tries?: number;
}

/** Cookies of sign-ins in progress outlive an update of the issuer, so the names of their fields never change. */
const format = storedFormat<Interaction>({
  startedAt: "beganAt",
  upstream: "elsewhere",
  firstFactor: "passed",
});
const prefix = "__Host-sign-in-";
const lifetimeS = 3_600;
/** Maximum number of sign-ins of one browser; the oldest is removed. */
const maxInteractions = 5;
/**
 * Maximum bytes of these cookies, and of all cookies, in a request: a request whose headers exceed 16 KiB is refused.
 * Sites of the same parent domain can set cookies for this host too, so the issuer drops its own, except for the
 * newest.
 */
const maxOwnBytes = 6_144;
const maxTotalBytes = 10_240;
/** Maximum bytes of a client's state in the cookie, as JSON. */
const maxCookieStateBytes = 1_024;
/** Browsers reject longer cookies. */
const maxCookieBytes = 4_096;
/** The text in a cookie has a multiple of these bytes, so that the size of the cookie reveals no field of it. */
const paddedBytes = 512;
/** The longest text whose cookie has at most `maxCookieBytes`. */
const maxTextBytes = 3_016;
const idPattern = /^[A-Za-z0-9_-]{16}$/;

export function newInteraction(request: AuthorizeRequest, now: number): Interaction {
  const isLong = Buffer.byteLength(JSON.stringify(request.state ?? "")) > maxCookieStateBytes;
  return {
    id: randomBytes(12).toString("base64url"),
    request,
    startedAt: now,
    ...(isLong && { hasLongState: true }),
  };
}

/** Path of a step of the sign-in, such as `/code`. It has the sealed state of the client if that is long. */
export function stepPath(app: Pick<App, "keys">, interaction: Interaction, step = ""): string {
  const state = sealedState(app, interaction);
  return `/sign-in/${interaction.id}${step}${state === undefined ? "" : `?state=${state}`}`;
}

/** A long state, sealed for its interaction; undefined if the cookie has the state, or this request lacks it. */
export function sealedState({ keys }: Pick<App, "keys">, interaction: Interaction): string | undefined {
  const { state } = interaction.request;
  if (interaction.hasLongState !== true || state === undefined) return undefined;
  return seal(keys.sealingKey("client state"), state, interaction.id);
}

/** The interaction with its long state, from where `sealedState` was sent. */
export function withSealedState({ keys }: Pick<App, "keys">, interaction: Interaction, sealed: string): Interaction {
  if (interaction.hasLongState !== true) return interaction;
  const state = unseal(keys.sealingKey("client state"), sealed, interaction.id);
  return state === undefined ? interaction : { ...interaction, request: { ...interaction.request, state } };
}

/** The interaction as the cookie has it. */
function withoutLongState(interaction: Interaction): Interaction {
  if (interaction.hasLongState !== true) return interaction;
  const { state: _, ...request } = interaction.request;
  return { ...interaction, request };
}

/** Set-Cookie headers that store an interaction and remove those above the limits. */
export function saveInteraction(app: App, { cookies }: IncomingRequest, interaction: Interaction): string[] {
  const name = `${prefix}${interaction.id}`;
  const text = format.format(withoutLongState(interaction));
  const sealed = seal(app.keys.sealingKey("interaction"), padded(text), interaction.id);
  if (bytesOf(name, sealed) > maxCookieBytes)
    throw new Refused(problemPage(app, 400, "This sign-in is too long for a cookie of the browser."));
  const others = [...cookies.keys()]
    .filter((each) => isInteractionCookie(each) && each !== name)
    .map((each) => ({
      name: each,
      startedAt: readInteraction(app, cookies, each.slice(prefix.length))?.startedAt ?? 0,
      bytes: bytesOf(each, cookies.get(each) ?? ""),
    }))
    .toSorted((a, b) => b.startedAt - a.startedAt);
  const foreignBytes = [...cookies].reduce(
    (sum, [each, value]) => sum + (isInteractionCookie(each) ? 0 : bytesOf(each, value)),
    0,
  );
  const pathBytes = sealedState(app, interaction)?.length ?? 0;
  const budget = Math.min(maxOwnBytes, maxTotalBytes - foreignBytes - pathBytes);
  let bytes = bytesOf(name, sealed);
  const dropped = others.filter((other, at) => {
    if (other.startedAt === 0 || at >= maxInteractions - 1 || bytes + other.bytes > budget) return true;
    bytes += other.bytes;
    return false;
  });
  return [setCookie(name, sealed, lifetimeS), ...dropped.map((other) => setCookie(other.name, "", 0))];
}

/** Appends spaces, which JSON permits, up to the next multiple of `paddedBytes` or the longest possible text. */
function padded(json: string): string {
  const bytes = Buffer.byteLength(json);
  const target = Math.min(Math.ceil(bytes / paddedBytes) * paddedBytes, maxTextBytes);
  return json + " ".repeat(Math.max(0, target - bytes));
}

const isInteractionCookie = (name: string) => name.startsWith(prefix);

/** Size of a cookie in a request's header. */
function bytesOf(name: string, value: string): number {
  return Buffer.byteLength(name) + Buffer.byteLength(value) + "=; ".length;
}

export function clearInteraction({ id }: Interaction): string {
  return setCookie(`${prefix}${id}`, "", 0);
}

/** The interaction of a mail, in any tab. */
export function interactionOfMail(
  app: Pick<App, "keys" | "now">,
  cookies: IncomingRequest["cookies"],
  mailId: string,
): Interaction | undefined {
  for (const name of cookies.keys()) {
    const found = isInteractionCookie(name) ? readInteraction(app, cookies, name.slice(prefix.length)) : undefined;
    if (found?.mail?.id === mailId) return found;
  }
  return undefined;
}

/** Reads an interaction; undefined if the browser has none of this id or it has expired. */
export function readInteraction(
  { keys, now }: Pick<App, "keys" | "now">,
  cookies: IncomingRequest["cookies"],
  id: string,
): Interaction | undefined {
  const sealed = cookies.get(`${prefix}${id}`);
  if (sealed === undefined || !idPattern.test(id)) return undefined;
  const plain = unseal(keys.sealingKey("interaction"), sealed, id);
  if (plain === undefined) return undefined;
  const interaction = format.parse(plain);
  return interaction.startedAt + lifetimeS * 1_000 > now() ? interaction : undefined;
}
