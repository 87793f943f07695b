import type { ClientAddresses } from "@holdfast/common/client-address.ts";
import type { HttpRequest } from "@holdfast/https/request-handler.ts";
import ipaddr from "ipaddr.js";

/** A request as rules read it. */
export interface Asked {
  readonly method: string;
  readonly path: string;
  /** Of the URL. */
  readonly query: URLSearchParams;
  /** Of the body of a POST. */
  readonly form: URLSearchParams;
  readonly cookies: ReadonlyMap<string, string>;
  readonly authorization: string | undefined;
  readonly origin: string | undefined;
  /** Of browsers that tell it: "same-origin", "cross-site" and others. */
  readonly fetchSite: string | undefined;
  /** Of the client, as trusted proxies tell it. */
  readonly address: string;
  /** The address, or the /64 of IPv6, as rows have it. */
  readonly source: string;
  /** It is a proxy's that says nothing of its clients: nothing is limited by it. */
  readonly isShared: boolean;
  readonly userAgent: string;
}

/** An answer as rules make it. */
export interface Answer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | readonly string[]>>;
  readonly body: string;
}

/** Refused with this answer, from however deep. */
export class Refused extends Error {
  override readonly name = "Refused";
  readonly answer: Answer;

  constructor(answer: Answer) {
    super(`answered ${answer.status}`);
    this.answer = answer;
  }
}

const bodyBytesMax = 65_536;

/** Throws Refused with 413, 415 and 400. */
export async function askedOf(
  request: HttpRequest,
  origin: string,
  { address, sources }: { readonly address: string; readonly sources: ClientAddresses["sources"] },
): Promise<Asked> {
  const url = URL.parse(request.url ?? "/", origin);
  if (url === null || url.origin !== origin) throw new Refused(plain(400, "This is no path."));
  const method = request.method ?? "GET";
  const { headers } = request;
  const form = method === "POST" ? await formOf(request) : new URLSearchParams();
  return {
    method,
    path: url.pathname,
    query: url.searchParams,
    form,
    cookies: cookiesOf(headers.cookie),
    authorization: headers.authorization,
    origin: headers.origin,
    fetchSite: one(headers["sec-fetch-site"]),
    address,
    source: sourceOf(address),
    isShared: sources(address).length === 0,
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
      if (bytes > bodyBytesMax) throw new Refused(plain(413, "The body is too large."));
      parts.push(part);
    }
  } catch (error) {
    // The client left in the middle: nobody reads the answer.
    throw error instanceof Refused ? error : new Refused(plain(400, "The body ended before it was whole."));
  }
  return new URLSearchParams(Buffer.concat(parts).toString("utf8"));
}

/** Of two of one name the first counts. */
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

function one(value: string | string[] | undefined): string | undefined {
  return Array.isArray(value) ? value[0] : value;
}

export function plain(status: number, text: string): Answer {
  return {
    status,
    headers: { "content-type": "text/plain; charset=utf-8", "cache-control": "no-store" },
    body: `${text}\n`,
  };
}

export function json(status: number, value: unknown, headers: Answer["headers"] = {}): Answer {
  const body = typeof value === "string" ? value : JSON.stringify(value);
  return { status, headers: { "content-type": "application/json", "cache-control": "no-store", ...headers }, body };
}

/** 303: whatever it was, what follows is a GET. */
export function seeOther(location: string, headers: Answer["headers"] = {}): Answer {
  return {
    status: 303,
    headers: { location, "cache-control": "no-store", "referrer-policy": "no-referrer", ...headers },
    body: "",
  };
}
