import type { ClientAddresses } from "@holdfast/common/client-address.ts";
import type { HttpRequest } from "@holdfast/https/request-handler.ts";
import ipaddr from "ipaddr.js";

/** A parsed request. */
export interface IncomingRequest {
  readonly method: string;
  readonly path: string;
  /** Query parameters of the URL. */
  readonly query: URLSearchParams;
  /** Fields of a POST body. */
  readonly form: URLSearchParams;
  readonly cookies: ReadonlyMap<string, string>;
  readonly authorization: string | undefined;
  readonly origin: string | undefined;
  /** Sec-Fetch-Site of browsers that send it: "same-origin", "cross-site" and others. */
  readonly fetchSite: string | undefined;
  /** IP address of the client, as trusted proxies report it. */
  readonly address: string;
  /** The address, or the /64 of an IPv6 address, as it is stored in rows. */
  readonly source: string;
  /** The address, or the /48 of an IPv6 address: a site, whose requests for mails are counted together. */
  readonly network: string;
  /** True if the address belongs to a proxy that reveals no client addresses, so that no limit applies to it. */
  readonly isSharedSource: boolean;
  readonly userAgent: string;
}

/** A response of a handler. */
export interface OutgoingResponse {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | readonly string[]>>;
  readonly body: string;
}

/** Ends the handling of a request with this response. */
export class Refused extends Error {
  override readonly name = "Refused";
  readonly response: OutgoingResponse;

  constructor(response: OutgoingResponse) {
    super(`the response has status ${response.status}`);
    this.response = response;
  }
}

const maxBodyBytes = 65_536;

/** Parses a request. Throws Refused with status 400, 413 or 415. */
export async function readRequest(
  request: HttpRequest,
  origin: string,
  { address, sources }: { readonly address: string; readonly sources: ClientAddresses["sources"] },
): Promise<IncomingRequest> {
  const url = URL.parse(request.url ?? "/", origin);
  if (url === null || url.origin !== origin) throw new Refused(plain(400, "The path is invalid."));
  const method = request.method ?? "GET";
  const { headers } = request;
  const groups = sources(address);
  const form = method === "POST" ? await formOf(request) : new URLSearchParams();
  return {
    method,
    path: url.pathname,
    query: url.searchParams,
    form,
    cookies: cookiesOf(headers.cookie),
    authorization: headers.authorization,
    origin: headers.origin,
    fetchSite: firstValue(headers["sec-fetch-site"]),
    address,
    source: sourceOf(address),
    network: groups.at(-1)?.name ?? sourceOf(address),
    isSharedSource: groups.length === 0,
    userAgent: (headers["user-agent"] ?? "").slice(0, 200),
  };
}

async function formOf(request: HttpRequest): Promise<URLSearchParams> {
  const type = (request.headers["content-type"] ?? "application/x-www-form-urlencoded").split(";")[0]?.trim();
  if (type?.toLowerCase() !== "application/x-www-form-urlencoded")
    throw new Refused(plain(415, "The body must be a form."));
  const parts: Buffer[] = [];
  let bytes = 0;
  try {
    for await (const part of request as AsyncIterable<Buffer>) {
      bytes += part.length;
      if (bytes > maxBodyBytes) throw new Refused(plain(413, "The body is too large."));
      parts.push(part);
    }
  } catch (error) {
    throw error instanceof Refused ? error : incomplete();
  }
  // A cancelled HTTP/2 stream ends without an error.
  if (request.aborted) throw incomplete();
  return new URLSearchParams(Buffer.concat(parts).toString("utf8"));
}

/** The client disconnected, so it does not read the response. */
const incomplete = () => new Refused(plain(400, "The body is incomplete."));

/** Parses cookies; the first one of a name counts. */
function cookiesOf(header: string | undefined): ReadonlyMap<string, string> {
  const found = new Map<string, string>();
  for (const part of (header ?? "").split(";")) {
    const [name = "", ...value] = part.trim().split("=");
    if (name !== "" && !found.has(name)) found.set(name, value.join("="));
  }
  return found;
}

function sourceOf(address: string): string {
  if (!ipaddr.isValid(address)) return "";
  const parsed = ipaddr.process(address);
  if (parsed.kind() === "ipv4") return parsed.toString();
  return `${(parsed as ipaddr.IPv6).parts
    .slice(0, 4)
    .map((part) => part.toString(16))
    .join(":")}::/64`;
}

function firstValue(value: string | string[] | undefined): string | undefined {
  return Array.isArray(value) ? value[0] : value;
}

export function plain(status: number, text: string): OutgoingResponse {
  return {
    status,
    headers: { "content-type": "text/plain; charset=utf-8", "cache-control": "no-store" },
    body: `${text}\n`,
  };
}

export function json(status: number, value: unknown, headers: OutgoingResponse["headers"] = {}): OutgoingResponse {
  const body = typeof value === "string" ? value : JSON.stringify(value);
  return { status, headers: { "content-type": "application/json", "cache-control": "no-store", ...headers }, body };
}

/** A 303 redirect, which the client follows with GET. */
export function seeOther(location: string, headers: OutgoingResponse["headers"] = {}): OutgoingResponse {
  return {
    status: 303,
    headers: { location, "cache-control": "no-store", "referrer-policy": "no-referrer", ...headers },
    body: "",
  };
}

/**
 * A Set-Cookie header for this host only, inaccessible to scripts and not sent with cross-site requests. `maxAgeS` 0
 * removes the cookie.
 */
export function setCookie(name: string, value: string, maxAgeS: number): string {
  return `${name}=${value}; Path=/; Secure; HttpOnly; SameSite=Lax; Max-Age=${maxAgeS}`;
}
