import type { PresentedSession } from "@holdfast/common/call.ts";
import { sessionCookieOf } from "@holdfast/common/session-cookie.ts";
import { type Exchange, headerOf } from "./exchange.ts";
import type { Presented } from "./gate.ts";
import type { Faults } from "./json/faults.ts";

/** Credentials and origin of the request; `subject` is the organization of its path. */
export function presentedBy(exchange: Exchange, subject: string | undefined): Presented {
  const { request, source, requestId } = exchange;
  return {
    authorization: headerOf(request, "authorization"),
    session: sessionOf(exchange),
    organization: headerOf(request, "holdfast-organization"),
    fetchSite: headerOf(request, "sec-fetch-site"),
    origin: headerOf(request, "origin"),
    authority: headerOf(request, ":authority") ?? headerOf(request, "host"),
    source,
    requestId,
    subject,
  };
}

/**
 * The session of the request's cookie. It is accepted only from pages of this origin: browsers send Sec-Fetch-Site with
 * each request, and pages cannot set this header.
 */
function sessionOf({ request }: Exchange): PresentedSession | undefined {
  if (headerOf(request, "authorization") !== undefined || headerOf(request, "sec-fetch-site") !== "same-origin")
    return undefined;
  const secret = sessionCookieOf(headerOf(request, "cookie"));
  if (secret === undefined) return undefined;
  const isRead = request.method === "GET" || request.method === "HEAD";
  return { secret, csrfToken: headerOf(request, "holdfast-csrf"), isRead };
}

export const etagPattern = '^"[!#-~]*"$';

const etag = new RegExp(etagPattern);

/** Checks If-Match (RFC 9110, 13.1.1): one quoted entity tag, or an asterisk. */
export function readIfMatch(text: string | undefined, faults: Faults): string | undefined {
  if (text === undefined || text === "*" || etag.test(text)) return text;
  faults.parameter("If-Match", "invalid_etag", "must be one ETag in its quotes, or *");
  return undefined;
}

/** Maximum time that a read waits for the revision in Holdfast-Revision. */
export const revisionWaitMs = 1_000;

/** Parses Holdfast-Revision, a decimal number that the response to a change contained, such as `1042`. */
export function readRevision(text: string | undefined, faults: Faults): bigint | undefined {
  if (text === undefined) return undefined;
  if (/^\d{1,18}$/.test(text)) return BigInt(text);
  faults.parameter("Holdfast-Revision", "invalid_revision", "must be the Holdfast-Revision of an earlier response");
  return undefined;
}
