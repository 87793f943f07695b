import { readFileSync } from "node:fs";
import { Agent, request } from "node:https";
import { Readable } from "node:stream";
import { SettingsError } from "./profiles.ts";

/** Statuses whose answers have no body, which a Response insists on. */
const bodiless = new Set([204, 205, 304]);

/**
 * A fetch that believes only the authorities in this file (PEM, one or several), for this client and not for the whole
 * process. When a request fails the file is read anew: an installation may have changed to another authority, which the
 * next request then believes. It follows no redirects. Throws SettingsError when the file cannot be read.
 */
export function createAuthorityFetch(caFile: string): typeof globalThis.fetch {
  let authorities = readAuthorities(caFile);
  let agent = agentFor(authorities);

  function renew(): void {
    const current = readIfThere(caFile);
    if (current === undefined || current === authorities) return;
    authorities = current;
    agent = agentFor(current);
  }

  return async (input, init) => {
    const asked = new Request(input, init);
    const url = new URL(asked.url);
    if (url.protocol !== "https:") return globalThis.fetch(input, init);
    const signal = init?.signal ?? (input instanceof Request ? input.signal : undefined);
    const headers = Object.fromEntries(asked.headers);
    const body = asked.body === null ? undefined : Buffer.from(await asked.arrayBuffer());
    return new Promise((resolve, reject) => {
      const sent = request(url, { agent, method: asked.method, headers, ...(signal && { signal }) });
      sent.once("error", (cause) => {
        if (signal?.aborted) return reject(signal.reason);
        reject(new TypeError("fetch failed", { cause }));
        renew();
      });
      sent.once("response", (answer) => {
        const { statusCode: status = 0, statusMessage: statusText = "" } = answer;
        const received = new Headers();
        for (const [name, values] of Object.entries(answer.headersDistinct))
          for (const value of values ?? []) received.append(name, value);
        if (bodiless.has(status)) answer.resume();
        const stream = bodiless.has(status) ? null : (Readable.toWeb(answer) as ReadableStream<Uint8Array>);
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
  const authorities = readIfThere(caFile);
  if (authorities === undefined) throw new SettingsError(`the authority to trust cannot be read from ${caFile}`);
  return authorities;
}

function readIfThere(path: string): string | undefined {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return undefined;
  }
}
