/**
 * Ports of other protocols, to which an HTTP request could be an attack (cross-protocol request forgery): the list of
 * the Fetch standard, and ports of databases.
 */
const forbiddenPorts: ReadonlySet<number> = new Set([
  1, 7, 9, 11, 13, 15, 17, 19, 20, 21, 22, 23, 25, 37, 42, 43, 53, 69, 77, 79, 87, 95, 101, 102, 103, 104, 109, 110,
  111, 113, 115, 117, 119, 123, 135, 137, 139, 143, 161, 179, 389, 427, 445, 465, 512, 513, 514, 515, 526, 530, 531,
  532, 540, 548, 554, 556, 563, 587, 601, 636, 989, 990, 993, 995, 1433, 1521, 1719, 1720, 1723, 2049, 2379, 2380, 3306,
  3389, 3659, 4045, 4190, 5060, 5061, 5432, 6000, 6379, 6566, 6665, 6666, 6667, 6668, 6669, 6679, 6697, 10080, 11211,
  27017,
]);

/** A parsed URL of a user. */
export interface Target {
  /** The URL without its fragment. */
  readonly url: URL;
  /** Host name, or IP address in standard notation without brackets. */
  readonly host: string;
  readonly port: number;
}

export type ParsedTarget =
  | { readonly ok: true; readonly target: Target }
  | { readonly ok: false; readonly fault: "invalid" | "port"; readonly detail: string };

/** JSON Schema of a user's URL; the parser is stricter. */
export const targetFormat = { format: "uri", pattern: "^[hH][tT][tT][pP][sS]?://[!-.0-\\[\\]-~][!-\\[\\]-~]*$" };
/** JSON Schema of a user's URL without query and fragment. */
export const plainTargetFormat = {
  format: "uri",
  pattern: '^[hH][tT][tT][pP][sS]?://[!"$-.0->@-\\[\\]-~][!"$->@-\\[\\]-~]*$',
};

/** Format of an HTTP target with a path, and possibly a query. */
export const pathTargetFormat = {
  format: "uri",
  pattern: '^[hH][tT][tT][pP][sS]?://[!"$-.0->@-\\[\\]-~]+/[!"$->@-\\[\\]-~][!"$-\\[\\]-~]*$',
};

/**
 * Parses a URL by the WHATWG standard, so that there is a single interpretation: `0x7f.1` is `127.0.0.1` from here on.
 */
export function parseTarget(text: string): ParsedTarget {
  const invalid = (detail: string): ParsedTarget => ({ ok: false, fault: "invalid", detail });
  // The parser removes tabs and line ends and trims; the URL that a user sees must be the URL that is called.
  if (/[\s\\]|[^\x20-\x7e]/.test(text)) return invalid("must be plain ASCII without spaces and backslashes");
  if (!/^https?:\/\/[^/]/i.test(text)) return invalid("must begin with http:// or https://");
  if (!URL.canParse(text)) return invalid("is not a URL");
  const url = new URL(text);
  if (url.username !== "" || url.password !== "" || /^https?:\/\/[^/?#]*@/i.test(text))
    return invalid("must not have a user name or password");
  url.hash = "";
  const port = Number(url.port === "" ? (url.protocol === "https:" ? 443 : 80) : url.port);
  if (forbiddenPorts.has(port) || port === 0)
    return { ok: false, fault: "port", detail: `port ${port} is not one of HTTP servers` };
  return { ok: true, target: { url, host: url.hostname.replace(/^\[(.*)\]$/, "$1"), port } };
}
