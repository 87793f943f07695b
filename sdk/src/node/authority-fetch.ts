import { Agent, request } from "node:https";
import { Readable } from "node:stream";

/** Statuses whose answers have no body, which a Response insists on. */
const bodiless = new Set([204, 205, 304]);

/**
 * A fetch that believes only these authorities (PEM, one or several), for this client and not for the whole process. It
 * follows no redirects.
 */
export function createAuthorityFetch(authorities: string): typeof globalThis.fetch {
  const agent = new Agent({ keepAlive: true, ca: authorities });
  return async (input, init) => {
    const asked = new Request(input, init);
    const url = new URL(asked.url);
    if (url.protocol !== "https:") return globalThis.fetch(input, init);
    const signal = init?.signal ?? (input instanceof Request ? input.signal : undefined);
    const headers = Object.fromEntries(asked.headers);
    const body = asked.body === null ? undefined : Buffer.from(await asked.arrayBuffer());
    return new Promise((resolve, reject) => {
      const sent = request(url, { agent, method: asked.method, headers, ...(signal && { signal }) });
      sent.once("error", (cause) => reject(signal?.aborted ? signal.reason : new TypeError("fetch failed", { cause })));
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
