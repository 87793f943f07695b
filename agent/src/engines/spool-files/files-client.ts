import { Agent, request } from "node:https";
import type { IncomingMessage } from "node:http";
import { setTimeout as sleep } from "node:timers/promises";
import type { SpoolFile, SpoolFiles } from "./spool-files.ts";

interface MemberConnection {
  readonly address: string;
  readonly port: number;
  /** Key and certificate of the agent, PEM. */
  readonly identity: string;
  /** Authority of the members' certificates, PEM. */
  readonly authority: string;
  /** Common name in the certificate of the server. */
  readonly server: string;
}

/** A member that sends nothing for this long does not respond. */
const silentMs = 60_000;

/** The files of another member (files-server.ts). */
export function memberFiles({ address, port, identity, authority, server }: MemberConnection): SpoolFiles {
  const agent = new Agent({ keepAlive: true, maxSockets: 4 });

  async function send(method: string, path: string, signal: AbortSignal): Promise<IncomingMessage> {
    const response = await new Promise<IncomingMessage>((resolve, reject) => {
      const limit = AbortSignal.timeout(silentMs);
      const abort = () => sent.destroy(new Error(`the member at ${address} does not respond`));
      const sent = request({
        host: address,
        port,
        method,
        path,
        agent,
        signal,
        key: identity,
        cert: identity,
        ca: authority,
        // The certificate names the party, and not its address.
        checkServerIdentity: (_host, { subject }) =>
          subject.CN === server ? undefined : new Error(`the member presents ${String(subject.CN)}`),
      });
      limit.addEventListener("abort", abort, { once: true });
      sent.on("error", reject);
      sent.once("response", (found) => {
        limit.removeEventListener("abort", abort);
        resolve(found);
      });
      sent.end();
    });
    if (response.statusCode === 200) return response;
    const reason = (await textOf(response)) || String(response.statusCode);
    throw new Error(`the member at ${address} refused ${method} ${path}: ${reason}`);
  }

  const json = async (method: string, path: string, signal: AbortSignal): Promise<unknown> =>
    JSON.parse(await textOf(await send(method, path, signal)));
  const query = (path: string, bytes: number) => new URLSearchParams({ path, bytes: String(bytes) }).toString();

  return {
    list: async (signal) => (await json("GET", "/files", signal)) as SpoolFile[],
    async *read(path, from, signal) {
      const response = await send("GET", `/file?${query(path, from)}`, signal);
      const parts = response[Symbol.asyncIterator]() as AsyncIterator<Buffer, void>;
      try {
        for (let part = await nextOf(parts); part.done !== true; part = await nextOf(parts)) yield part.value;
      } finally {
        response.destroy();
      }
    },
    async release(path, bytes, signal) {
      await json("POST", `/release?${query(path, bytes)}`, signal);
    },
    async remove(signal) {
      await json("DELETE", "/files", signal);
    },
    limit: async (signal) => (await json("GET", "/limit", signal)) as number,
  };

  async function nextOf<T>(parts: AsyncIterator<T, void>): Promise<IteratorResult<T, void>> {
    const timer = new AbortController();
    const silence = sleep(silentMs, undefined, { signal: timer.signal, ref: false }).then(() => {
      throw new Error(`the member at ${address} does not respond`);
    });
    silence.catch(() => undefined);
    try {
      return await Promise.race([parts.next(), silence]);
    } finally {
      timer.abort();
    }
  }
}

async function textOf(response: IncomingMessage): Promise<string> {
  let text = "";
  response.setEncoding("utf8");
  for await (const part of response) text += String(part);
  return text;
}
