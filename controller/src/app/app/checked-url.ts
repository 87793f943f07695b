import { type FieldFault, pointerOf } from "@holdfast/common/errors.ts";

const loopback = new Set(["localhost", "127.0.0.1", "[::1]"]);

/** The formats, as far as JSON Schema can express them; the functions below check more. */
const httpsUrl = "[hH][tT][tT][pP][sS]://[!$&-.0-;=?-Z_a-z~][!$&-;=?-Z_a-z~]*";
const loopbackUrl = "[hH][tT][tT][pP]://(localhost|127\\.0\\.0\\.1|\\[::1\\])(:[0-9]{1,4})?([/?][!$&-;=?-Z_a-z~]*)?";
export const httpsUrlForm = { format: "uri", pattern: `^${httpsUrl}$` };
export const browserUrlForm = { format: "uri", pattern: `^(${httpsUrl}|${loopbackUrl})$` };
export const originForm = { format: "uri", pattern: "^https?://[!$&-)+-.0-;=A-Z_a-z~]+$" };

/**
 * A URI of a native app (RFC 8252 section 7.1). Its scheme is a domain in reverse order, such as com.example.app; the
 * required dot excludes schemes that browsers interpret, such as javascript.
 */
const privateUseUri = "[a-z][a-z0-9+-]*(\\.[a-z0-9+-]+)+:/([!$&-)+-;=?-Z_a-z~]|%[0-9A-Fa-f]{2})*";
const isPrivateUse = new RegExp(`^${privateUseUri}$`);
const otherScheme = /^(?!https?:)[a-z][a-z0-9+.-]*:/i;
const withoutAsterisk = (pattern: string) => pattern.replaceAll("&-", "&-)+-");
/** Redirect URLs of browsers, and URIs of native apps. */
export const redirectUriForm = {
  format: "uri",
  pattern: `^(${withoutAsterisk(httpsUrl)}|${withoutAsterisk(loopbackUrl)}|${privateUseUri})$`,
};
/** The home URL of an app, the prefix of its first redirect URI. */
export const homeUrlForm = { format: "uri", pattern: withoutAsterisk(browserUrlForm.pattern) };

/** Faults of a redirect URI of a client: a URL for browsers, or a URI of a native app; no wildcards. */
export function redirectUriFaults(field: string, text: string): FieldFault[] {
  if (isPrivateUse.test(text)) return URL.parse(text) === null ? faultOf(field, "must be an absolute URL") : [];
  if (!otherScheme.test(text) || text.includes("*")) return exactUrlFaults(field, text);
  return faultOf(
    field,
    "must begin with https://, with http:// on loopback, or with a native app's scheme that has a dot and a slash after " +
      "it, such as com.example.shop:/callback, and have no fragment",
  );
}

/** Faults of a URL for browsers that is compared exactly; a wildcard would never match. */
export function exactUrlFaults(field: string, text: string): FieldFault[] {
  if (!text.includes("*")) return browserUrlFaults(field, text);
  return faultOf(
    field,
    "must not contain *: URLs are compared exactly, so list each one; a literal * in a path is %2A",
  );
}

function faultOf(field: string, detail: string): FieldFault[] {
  return [{ field, pointer: pointerOf(field), code: "invalid_url", detail }];
}

/** Faults of a URL for browsers: https, or http on loopback; no fragment, no credentials. */
export function browserUrlFaults(field: string, text: string): FieldFault[] {
  const fault = (detail: string) => faultOf(field, detail);
  // The parser drops control characters, but redirect URLs are compared verbatim.
  if (!/^[\x21-\x7e]+$/.test(text)) return fault("must be a URL of printable ASCII");
  // The parser adds missing slashes, so require them.
  const url = /^[a-z]+:\/\/[^/]/i.test(text) ? URL.parse(text) : null;
  if (url === null) return fault("must be an absolute URL");
  // The parser accepts characters that URLs must not have (RFC 3986), and brackets without an address.
  if (!/^[a-z]+:\/\/(\[[^[\]]*\])?([!#$&-;=?-Z_a-z~]|%[0-9a-f]{2})*$/i.test(text))
    return fault("must have other characters percent-encoded");
  if (url.protocol !== "https:" && !(url.protocol === "http:" && loopback.has(url.hostname)))
    return fault("must begin with https://, or with http:// on loopback");
  if (url.username !== "" || url.password !== "") return fault("must not have credentials");
  return text.includes("#") ? fault("must not have a fragment") : [];
}
