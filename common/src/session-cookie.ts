/** The cookie of browser sessions. By its prefix, browsers accept it with Secure, Path=/ and no Domain only. */
const name = "__Host-holdfast";

/** The session's secret in a Cookie header; undefined without one. */
export function sessionCookieOf(header: string | undefined): string | undefined {
  for (const pair of header?.split(";") ?? []) {
    const equals = pair.indexOf("=");
    if (pair.slice(0, equals).trim() === name) return pair.slice(equals + 1).trim();
  }
  return undefined;
}

/** The Set-Cookie header that stores a session's secret. No script reads the cookie, and no other site sends it. */
export function sessionCookie(secret: string, maxAgeS: number): string {
  return `${name}=${secret}; Path=/; Max-Age=${maxAgeS}; Secure; HttpOnly; SameSite=Strict`;
}

/** The Set-Cookie header that removes the cookie. */
export const expiredSessionCookie: string = sessionCookie("", 0);
