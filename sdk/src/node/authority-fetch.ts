import { readFileSync } from "node:fs";
import { Agent, request } from "node:https";
import { Readable } from "node:stream";
import { SettingsError } from "./profiles.ts";

/** Statuses without a body; the Response constructor refuses a body for them. */
const bodiless = new Set([204, 205, 304]);

/**
 * A fetch that trusts only the certificate authorities in this PEM file, without changing the trust of the process.
 * When a request fails, the file is read again for the next request, because the installation may have rotated its
 * authority. It follows no redirects. Throws SettingsError when the file cannot be read.
 */
export function createAuthorityFetch(caFile: string): typeof globalThis.fetch {
  let authorities = readAuthorities(caFile);
  let agent = agentFor(authorities);

  function reloadAuthorities(): void {
    const current = readIfPresent(caFile);
    if (current === undefined || current === authorities) return;
    authorities = current;
    agent = agentFor(current);
  }

  return async (input, init) => {
    const outgoing = new Request(input, init);
    const url = new URL(outgoing.url);
    if (url.protocol !== "https:") return globalThis.fetch(input, init);
    const signal = init?.signal ?? (input instanceof Request ? input.signal : undefined);
    const headers = Object.fromEntries(outgoing.headers);
    const body = outgoing.body === null ? undefined : Buffer.from(await outgoing.arrayBuffer());
    return new Promise((resolve, reject) => {
      const sent = request(url, { agent, method: outgoing.method, headers, ...(signal && { signal }) });
      sent.once("error", (cause) => {
        if (signal?.aborted) return reject(signal.reason);
        reject(new TypeError("fetch failed", { cause }));
        reloadAuthorities();
      });
      sent.once("response", (incoming) => {
        const { statusCode: status = 0, statusMessage: statusText = "" } = incoming;
        const received = new Headers();
        for (const [name, values] of Object.entries(incoming.headersDistinct))
          for (const value of values ?? []) received.append(name, value);
        if (bodiless.has(status)) incoming.resume();
        const stream = bodiless.has(status) ? null : (Readable.toWeb(incoming) as ReadableStream<Uint8Array>);
        resolve(new Response(stream, { status, statusText, headers: received }));
      });
      sent.end(body);
    });
  };
}

function agentFor(authorities: string): Agent {
  return new Agent({ keepAlive: true, ca: authorities });
}

function readAuthorities(caFile: string): string {
  const authorities = readIfPresent(caFile);
  if (authorities === undefined) throw new SettingsError(`the authority to trust cannot be read from ${caFile}`);
  return authorities;
}

function readIfPresent(path: string): string | undefined {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return undefined;
  }
}
