/** The parts of an HTTP request that name its target. */
export interface TargetedRequest {
  readonly method?: string | undefined;
  readonly url?: string | undefined;
  /** Names and values in turn, as received. */
  readonly rawHeaders: readonly string[];
}

export type RequestTarget =
  /** `path` begins with a slash and has the query; `host` is the authority of an absolute-form target. */
  | { readonly kind: "path"; readonly path: string; readonly host?: string }
  /** `OPTIONS *`: the server itself. */
  | { readonly kind: "server" }
  | { readonly kind: "invalid"; readonly detail: string };

/** Printable ASCII without the delimiters that a URL parser would take for a path, a query or a user name. */
const hostForm = /^(?:(?![/?#@\\])[!-~])+$/;
const absoluteForm = /^https?:\/\/(?<host>[^/?#@\s]+)(?<path>(?:[/?][^#]*)?)$/i;

/**
 * The target of a request in origin-form, absolute-form or asterisk-form (RFC 9112, sections 3.2 and 3.2.1 to
 * 3.2.4). The authority of an absolute-form replaces the Host header. A request with two Host headers is invalid: a
 * proxy and this server could take different ones. So is an empty or malformed Host header, or `:authority` of HTTP/2.
 */
export function requestTargetOf({ method, url = "", rawHeaders }: TargetedRequest): RequestTarget {
  const hosts = valuesOf(rawHeaders, "host");
  if (hosts.length > 1) return { kind: "invalid", detail: "A request has one Host header." };
  if (![...hosts, ...valuesOf(rawHeaders, ":authority")].every(isHost))
    return { kind: "invalid", detail: "The Host header must be a host name or an IP address, with or without a port." };
  if (url.startsWith("/")) return { kind: "path", path: url };
  if (url === "*" && method === "OPTIONS") return { kind: "server" };
  const { host, path = "" } = absoluteForm.exec(url)?.groups ?? {};
  if (host === undefined || !isHost(host))
    return {
      kind: "invalid",
      detail: "The request target must be a path that begins with a slash, or an absolute URL.",
    };
  return { kind: "path", path: path.startsWith("/") ? path : `/${path}`, host };
}

function valuesOf(rawHeaders: readonly string[], name: string): string[] {
  return rawHeaders.filter((_, index) => index % 2 === 1 && rawHeaders[index - 1]?.toLowerCase() === name);
}

function isHost(text: string): boolean {
  return hostForm.test(text) && URL.canParse(`https://${text}`);
}
