import { randomBytes } from "node:crypto";
import type { DerivedKeys } from "../derived-keys.ts";
import { type IncomingRequest, setCookie } from "../http/messages.ts";
import type { MailRequester } from "./mail-shares.ts";

/**
 * A long-lived cookie that proves which users signed in with a browser. It signs nobody in: it only gives their
 * requests for mails a share that requests from other browsers cannot use up. It has a random id of the browser, and
 * for each user a MAC over this id and the address.
 */
const cookie = "__Host-browser";
/** Browsers limit the lifetime of a cookie to 400 days; each sign-in renews it. */
const lifetimeDays = 400;
/** Maximum number of users of one browser; the user with the oldest sign-in is removed. */
const maxUsers = 5;
const idPattern = /^[\w-]{22}$/;
const purpose = "signed-in browser";
/** Prefix of the sources of browsers in rows. No address has it. */
export const browserSources = "browser ";

interface BrowserCookie {
  readonly id: string | undefined;
  readonly macs: readonly string[];
}

function readCookie(cookies: IncomingRequest["cookies"]): BrowserCookie {
  const [id = "", ...macs] = (cookies.get(cookie) ?? "").split(".", maxUsers + 1);
  return idPattern.test(id) ? { id, macs } : { id: undefined, macs: [] };
}

const signedText = (id: string, email: string) => `${id} ${email}`;

/** The requester of a mail: the browser if the user of this address signed in there, else its network. */
export function mailRequester(
  keys: Pick<DerivedKeys, "isMac">,
  { cookies, network, isSharedSource }: Pick<IncomingRequest, "cookies" | "network" | "isSharedSource">,
  email: string,
): MailRequester {
  const { id, macs } = readCookie(cookies);
  if (id !== undefined && macs.some((mac) => keys.isMac(purpose, signedText(id, email), mac)))
    return { source: `${browserSources}${id}`, kind: "browser" };
  return { source: network, kind: isSharedSource ? "shared" : "network" };
}

/** The Set-Cookie header that records a sign-in of the user of this address. */
export function recordSignIn(
  keys: Pick<DerivedKeys, "mac">,
  cookies: IncomingRequest["cookies"],
  email: string,
): string {
  const { id = randomBytes(16).toString("base64url"), macs } = readCookie(cookies);
  const added = keys.mac(purpose, signedText(id, email));
  const all = [added, ...macs.filter((mac) => mac !== added)].slice(0, maxUsers);
  return setCookie(cookie, [id, ...all].join("."), lifetimeDays * 86_400);
}
