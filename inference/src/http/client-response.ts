import type { ServerResponse } from "node:http";
import type { HttpResponse } from "@holdfast/https/request-handler.ts";
import type { Metrics } from "../metrics.ts";
import { type ApiError, errorBody } from "./api-error.ts";

/** The response to one request. Output after the client disconnected is discarded. */
export interface ClientResponse {
  /** True if the client disconnected before the end of the response. */
  readonly isClosed: boolean;
  /** Calls `closed` once when the client disconnects before the end of the response. */
  onClosed(closed: () => void): void;
  /** True once a part of a stream was sent. */
  readonly isStarted: boolean;
  /** Provider label of metrics. */
  provider: string;
  header(name: string, value: string): void;
  /** Sends a complete response; for ASCII text `encoding` is "latin1". */
  json(body: Uint8Array | string, encoding?: "latin1"): void;
  fail(error: ApiError): void;
  /** Sends a part of a stream; resolves when the client can take more or has disconnected. */
  event(text: string): Promise<void>;
  end(): void;
  sinceStartS(): number;
}

/** Time after which a client that reads nothing is disconnected. */
const stallTimeoutMs = 60_000;
const json = { "content-type": "application/json" };
const ignore = () => undefined;

export function createClientResponse(response: HttpResponse, requestId: string, metrics: Metrics): ClientResponse {
  const started = performance.now();
  const headers: Record<string, string> = { "x-request-id": requestId, "cache-control": "no-store" };
  let hasEnded = false;
  let isStarted = false;
  let isClosed = false;
  let onClosed: (() => void) | undefined;
  response.once("close", () => {
    if (hasEnded) return;
    isClosed = true;
    onClosed?.();
  });
  response.on("error", ignore);
  // Responses of HTTP/1 and HTTP/2 have these methods.
  const stream = response as ServerResponse;

  const clientResponse: ClientResponse = {
    get isClosed() {
      return isClosed;
    },
    onClosed(closed) {
      onClosed = closed;
    },
    provider: "",
    get isStarted() {
      return isStarted;
    },
    header(name, value) {
      headers[name] = value;
    },
    json(body, encoding) {
      finish(200, "ok", json, body, encoding);
    },
    fail(error) {
      finish(error.status, error.code, { ...json, ...error.headers }, errorBody(error));
    },
    async event(text) {
      if (isClosed) return;
      if (!isStarted) {
        isStarted = true;
        stream.writeHead(200, { ...headers, "content-type": "text/event-stream; charset=utf-8" });
      }
      if (stream.write(text)) return;
      await untilRead(stream);
    },
    end() {
      if (hasEnded) return;
      hasEnded = true;
      metrics.responded(200, "ok", clientResponse.provider);
      stream.end();
    },
    sinceStartS: () => (performance.now() - started) / 1_000,
  };

  function finish(
    status: number,
    code: string,
    extra: Readonly<Record<string, string>>,
    body: Uint8Array | string,
    encoding?: "latin1",
  ): void {
    if (hasEnded) return;
    hasEnded = true;
    metrics.responded(status, code, clientResponse.provider);
    if (isClosed) return;
    const length = encoding === undefined ? Buffer.byteLength(body) : body.length;
    stream.writeHead(status, { ...headers, ...extra, "content-length": String(length) });
    if (encoding === undefined) stream.end(body);
    else stream.end(body, encoding);
  }

  return clientResponse;
}

/**
 * Resolves when the client has read the buffered bytes or disconnected. A client that reads nothing is disconnected.
 */
function untilRead(stream: ServerResponse): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(() => stream.destroy(), stallTimeoutMs);
    const done = () => {
      clearTimeout(timer);
      stream.off("drain", done);
      stream.off("close", done);
      resolve();
    };
    stream.on("drain", done);
    stream.on("close", done);
  });
}
