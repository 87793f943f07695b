import { isIP } from "node:net";
import { Agent, fetch, request } from "undici";
import type { Platform } from "../platform/platform.ts";
import { resolveName } from "./dns-query.ts";

/** A page in a browser without scripts. */
export interface Page {
  readonly url: string;
  readonly status: number;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly text: string;
}

/** A browser without scripts: cookies, redirects and forms. Names are resolved by the platform's own DNS server. */
export interface Browser {
  /** Follows redirects up to one to the prefix `stopAt`, which is returned without a request. */
  get(url: string, options?: { readonly stopAt?: string }): Promise<Page>;
  /** Sends the first form of a page with these values besides its own. */
  submit(
    page: Page,
    values?: Readonly<Record<string, string>>,
    options?: { readonly stopAt?: string; readonly origin?: string },
  ): Promise<Page>;
  /** Sends a form of a page of this origin, without its fields. */
  post(url: string, options?: { readonly stopAt?: string }): Promise<Page>;
  readonly cookies: Map<string, string>;
  close(): Promise<void>;
}

/** Additional authorities and names of a browser. */
export interface BrowserOptions {
  /** PEM of authorities that it trusts as well. */
  readonly authorities?: readonly string[];
  /** Addresses of names, checked before the platform's DNS server. */
  readonly names?: Readonly<Record<string, string>>;
  /** Address that it connects from. */
  readonly from?: string;
}

/** Connections that trust the platform's authority and resolve by its DNS server. */
export function platformAgent(
  platform: Pick<Platform, "ca" | "admin">,
  { authorities = [], names = {}, from }: BrowserOptions = {},
): Agent {
  return new Agent({
    ...(from !== undefined && { localAddress: from }),
    connect: {
      ca: [platform.ca, ...authorities],
      lookup(host, options, callback) {
        const known = names[host] ?? (isIP(host) !== 0 ? host : undefined);
        const found = known !== undefined ? Promise.resolve([known]) : resolveName(platform.admin.dns_server, host);
        found.then(
          (addresses) => {
            const all = addresses.map((address) => ({ address, family: 4 as const }));
            if (all.length === 0) callback(new Error(`${host} has no address`), "", 4);
            else if (options.all === true) callback(null, all);
            else callback(null, all[0]?.address ?? "", 4);
          },
          (error: Error) => callback(error, "", 4),
        );
      },
    },
  });
}

export function createBrowser(platform: Pick<Platform, "ca" | "admin">, options: BrowserOptions = {}): Browser {
  const agent = platformAgent(platform, options);
  const cookies = new Map<string, string>();

  async function call(
    url: string,
    body: string | undefined,
    {
      stopAt,
      origin = new URL(url).origin,
    }: { readonly stopAt?: string | undefined; readonly origin?: string | undefined },
    hops = 0,
  ): Promise<Page> {
    if (hops > 10) throw new Error(`too many redirects, at ${url}`);
    if (stopAt !== undefined && url.startsWith(stopAt)) return { url, status: 0, headers: {}, text: "" };
    const cookie = [...cookies].map(([name, value]) => `${name}=${value}`).join("; ");
    const response = await request(url, {
      dispatcher: agent,
      method: body === undefined ? "GET" : "POST",
      headers: {
        accept: "text/html",
        ...(cookie !== "" && { cookie }),
        ...(body !== undefined && { "content-type": "application/x-www-form-urlencoded", origin }),
      },
      ...(body !== undefined && { body }),
    });
    const text = await response.body.text();
    for (const line of [response.headers["set-cookie"] ?? []].flat()) {
      const [pair = "", ...attributes] = line.split("; ");
      const equals = pair.indexOf("=");
      if (attributes.includes("Max-Age=0")) cookies.delete(pair.slice(0, equals));
      else cookies.set(pair.slice(0, equals), pair.slice(equals + 1));
    }
    const { location } = response.headers;
    if (typeof location === "string") return call(new URL(location, url).href, undefined, { stopAt }, hops + 1);
    return { url, status: response.statusCode, headers: response.headers, text };
  }

  return {
    cookies,
    get: (url, { stopAt } = {}) => call(url, undefined, { stopAt }),
    post: (url, { stopAt } = {}) => call(url, "", { stopAt }),
    submit(page, values = {}, { stopAt, origin } = {}) {
      const form = /<form method="post" action="([^"]*)">([\s\S]*?)<\/form>/.exec(page.text);
      if (form === null) throw new Error(`${page.url} has no form: ${page.text.slice(0, 2_000)}`);
      const hiddenFields = [...(form[2] ?? "").matchAll(/<input type="hidden" name="([^"]*)" value="([^"]*)">/g)];
      const fields = {
        ...Object.fromEntries(hiddenFields.map(([, name = "", value = ""]) => [name, value])),
        ...values,
      };
      const target = new URL(form[1] ?? "", page.url).href;
      return call(target, new URLSearchParams(fields).toString(), { stopAt, origin });
    },
    close: () => agent.close(),
  };
}

/** A fetch by undici over these connections, for clients that require the type of the global one. */
export function fetchOver(dispatcher: Agent): (url: string, init: object) => Promise<Response> {
  return async (url, init) => {
    const { status, statusText, headers, body } = await fetch(url, { ...init, dispatcher });
    return new Response(body, { status, statusText, headers: [...headers] });
  };
}
