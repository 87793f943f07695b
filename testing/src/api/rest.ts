import type { IncomingHttpHeaders } from "node:http";
import { Agent, request } from "node:https";
import { waitUntil } from "../wait-until.ts";
import { checkResponse } from "./response-rules.ts";
import type { RestResponse } from "./rest-response.ts";

export interface RestOptions {
  readonly headers?: Readonly<Record<string, string>>;
  /** Body that is sent as JSON. */
  readonly body?: unknown;
  /** Body that is sent unchanged, with the Content-Type of `headers`. */
  readonly rawBody?: string | Buffer;
  readonly timeoutMs?: number;
}

/** A caller of the REST API. Each response is checked by the rules of all responses; one that breaks them throws. */
export interface Rest {
  readonly baseUrl: string;
  call<T = Record<string, unknown>>(verb: string, path: string, options?: RestOptions): Promise<RestResponse<T>>;
  get<T = Record<string, unknown>>(path: string, options?: RestOptions): Promise<RestResponse<T>>;
  post<T = Record<string, unknown>>(path: string, body?: unknown, options?: RestOptions): Promise<RestResponse<T>>;
  patch<T = Record<string, unknown>>(path: string, body: unknown, options?: RestOptions): Promise<RestResponse<T>>;
  delete<T = Record<string, unknown>>(path: string, options?: RestOptions): Promise<RestResponse<T>>;
  /** Repeats a call without a response, or with 503 or 500, until the time is over; for repeatable calls only. */
  insist<T = Record<string, unknown>>(
    verb: string,
    path: string,
    options?: RestOptions & { withinMs?: number },
  ): Promise<RestResponse<T>>;
  /** Calls with another credential; without one if undefined. */
  as(authorization: string | undefined): Rest;
  close(): void;
}

export interface RestTarget {
  readonly baseUrl: string;
  readonly ca: string;
  /** Value of the header Authorization. */
  readonly authorization: string | undefined;
  /** Called with every response, such as to collect error bodies. */
  readonly onResponse?: (response: RestResponse<unknown>) => void;
}

export function basic(name: string, secret: string): string {
  return `Basic ${Buffer.from(`${name}:${secret}`).toString("base64")}`;
}

export function createRest(
  target: RestTarget,
  agent = new Agent({ ca: target.ca, keepAlive: true, servername: "" }),
): Rest {
  const { baseUrl, authorization } = target;

  async function call<T>(verb: string, path: string, options: RestOptions = {}): Promise<RestResponse<T>> {
    const payload = options.rawBody ?? (options.body === undefined ? undefined : JSON.stringify(options.body));
    const headers: Record<string, string> = {
      ...(authorization === undefined ? {} : { authorization }),
      ...(options.body === undefined ? {} : { "content-type": "application/json" }),
      ...options.headers,
    };
    const response = await send(`${baseUrl}${path}`, verb, headers, payload, agent, options.timeoutMs ?? 30_000);
    target.onResponse?.(response);
    checkResponse(verb, path, response);
    return response as RestResponse<T>;
  }

  return {
    baseUrl,
    call,
    get: (path, options) => call("GET", path, options),
    post: (path, body, options) => call("POST", path, { ...options, ...(body === undefined ? {} : { body }) }),
    patch: (path, body, options) => call("PATCH", path, { ...options, body }),
    delete: (path, options) => call("DELETE", path, options),
    async insist<T>(
      verb: string,
      path: string,
      { withinMs = 60_000, ...options }: RestOptions & { withinMs?: number } = {},
    ) {
      let last = "";
      const attempt = async () => {
        try {
          const response = await call<T>(verb, path, { timeoutMs: 20_000, ...options });
          if (response.status !== 503 && response.status !== 500) return { response };
          last = response.text;
          return undefined;
        } catch (error) {
          if (!isUnanswered(error)) return { error };
          last = (error as Error).message;
          return undefined;
        }
      };
      const limits = { withinMs, everyMs: 100, describe: () => last };
      const outcome = await waitUntil(`${verb} ${path} has an answer`, attempt, limits);
      if ("error" in outcome) throw outcome.error;
      return outcome.response;
    },
    as: (credential) => createRest({ ...target, authorization: credential }, agent),
    close: () => agent.destroy(),
  };
}

/** True if the connection was refused, closed or too slow, so that the outcome of the request is unknown. */
function isUnanswered(error: unknown): boolean {
  const code = error instanceof Error && "code" in error ? error.code : undefined;
  return ["ECONNREFUSED", "ECONNRESET", "EPIPE", "ETIMEDOUT", "ERR_STREAM_PREMATURE_CLOSE"].includes(String(code));
}

function send(
  url: string,
  method: string,
  headers: Readonly<Record<string, string>>,
  payload: string | Buffer | undefined,
  agent: Agent,
  timeoutMs: number,
): Promise<RestResponse<unknown>> {
  const length = payload === undefined ? {} : { "content-length": String(Buffer.byteLength(payload)) };
  return new Promise((resolve, reject) => {
    const outgoing = request(url, { method, agent, headers: { ...length, ...headers } }, (incoming) => {
      const chunks: Buffer[] = [];
      incoming.on("data", (chunk: Buffer) => chunks.push(chunk));
      incoming.once("error", reject);
      incoming.once("close", () => {
        clearTimeout(timer);
        if (!incoming.complete) return reject(Object.assign(new Error("the answer was cut"), { code: "ECONNRESET" }));
        const text = Buffer.concat(chunks).toString("utf8");
        const { statusCode: status = 0, headers: got } = incoming;
        resolve({ status, headers: got, text, json: text !== "" && isJson(got) ? JSON.parse(text) : {} });
      });
    });
    const timer = setTimeout(() => {
      outgoing.destroy(
        Object.assign(new Error(`${method} ${url}: no answer in ${timeoutMs} ms`), { code: "ETIMEDOUT" }),
      );
    }, timeoutMs);
    outgoing.once("error", (error) => {
      clearTimeout(timer);
      reject(error);
    });
    outgoing.end(payload);
  });
}

function isJson(headers: IncomingHttpHeaders): boolean {
  return /^application\/(problem\+)?json/.test(headers["content-type"] ?? "");
}
