import { once } from "node:events";
import { opensearchVerifier as verifierOf } from "@holdfast/controller/services/engine/opensearch.ts";
import { Client } from "undici";
import { waitUntil } from "../wait-until.ts";
import type { ConformanceClient, ConnectOptions } from "./conformance-subject.ts";
import type { EngineEndpoint } from "./engine-clients.ts";

/** OpenSearch's verifier with a fixed salt, so that a password always has the same one. */
export function opensearchVerifier(password: string): string {
  return verifierOf(password, "$2b$08$abcdefghijklmnopqrstuu");
}

/** An answer of the engine: its status, and its parsed JSON or text. */
export interface Answer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly body: unknown;
}

export interface OpensearchClient {
  /** `body`: an object is sent as JSON, a string as lines of JSON. */
  send(method: "GET" | "PUT" | "POST" | "DELETE" | "HEAD", path: string, body?: object | string): Promise<Answer>;
  /** Resolves when the server closes the connection. */
  readonly closed: Promise<void>;
  close(): Promise<void>;
}

/** A client with one connection, which it keeps open between requests. */
export function openClient(endpoint: EngineEndpoint, options: ConnectOptions): OpensearchClient {
  const { address, port } = endpoint.instance.spec;
  const client = new Client(`https://${address}:${port}`, {
    connect: {
      ca: endpoint.ca,
      servername: options.serverName ?? endpoint.serverName,
    },
    localAddress: options.from ?? address,
    pipelining: 1,
    keepAliveTimeout: 600_000,
    keepAliveMaxTimeout: 600_000,
  });
  const closed = once(client, "disconnect").then(() => undefined);
  const authorization = `Basic ${Buffer.from(`${options.user}:${options.password}`).toString("base64")}`;
  return {
    closed,
    async send(method, path, body) {
      const lines = typeof body === "string";
      const response = await client.request({
        method,
        path,
        headers: {
          authorization,
          ...(body !== undefined && { "content-type": lines ? "application/x-ndjson" : "application/json" }),
        },
        body: body === undefined ? null : lines ? body : JSON.stringify(body),
      });
      const text = await response.body.text();
      return { status: response.statusCode, headers: response.headers, body: parsed(text) };
    },
    close: () => client.destroy(),
  };
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

const index = "kv";

/** Keys are ids of documents in one index. Rejects unless the user may sign in. */
export async function opensearchConformanceClient(
  endpoint: EngineEndpoint,
  options: ConnectOptions,
): Promise<ConformanceClient> {
  const client = openClient(endpoint, options);
  const expectSuccess = async (
    ...request: Parameters<OpensearchClient["send"]>
  ): Promise<Readonly<Record<string, unknown>>> => {
    const { status, body } = await client.send(...request);
    if (status >= 400) throw new Error(`${request[1]}: ${status} ${JSON.stringify(body)}`);
    return body as Readonly<Record<string, unknown>>;
  };
  try {
    await expectSuccess("GET", "/");
  } catch (error) {
    await client.close();
    throw error;
  }
  let isOpen = true;
  const close = () => {
    isOpen = false;
    return client.close();
  };
  /** A user who was dropped has an open connection, on which the next request is refused. */
  const isRefused = async () => {
    if (!isOpen) return true;
    const answer = await client.send("GET", "/").catch(() => undefined);
    return answer === undefined || answer.status === 401;
  };
  async function untilEnded(): Promise<void> {
    try {
      await Promise.race([client.closed, waitUntil("the engine refuses the user", isRefused, { withinMs: 30_000 })]);
    } finally {
      await close();
    }
  }
  return {
    async write(key, value) {
      await expectSuccess("PUT", `/${index}/_doc/${key}`, { value });
    },
    async read(key) {
      const { status, body } = await client.send("GET", `/${index}/_doc/${key}`);
      if (status === 404) return undefined;
      if (status >= 400) throw new Error(`${status} ${JSON.stringify(body)}`);
      return (body as { _source: { value: string } })._source.value;
    },
    get ended() {
      return untilEnded();
    },
    close,
  };
}

/** Sends a request without TLS; rejects, since the engine has no such port. */
export async function connectPlain(endpoint: EngineEndpoint, options: ConnectOptions): Promise<unknown> {
  const { address, port } = endpoint.instance.spec;
  const client = new Client(`http://${address}:${port}`, { localAddress: options.from ?? address });
  try {
    return await client.request({ method: "GET", path: "/" });
  } finally {
    await client.destroy();
  }
}
