import type { ServerResponse } from "node:http";
import type { HttpResponse } from "@holdfast/https/request-handler.ts";
import type { Tokens } from "../journal/journal-state.ts";
import type { Metrics } from "../metrics.ts";
import { type ApiError, errorBody } from "./api-error.ts";

/** The answer to one request. What is said after its client left goes nowhere. */
export interface ClientAnswer {
  /** Its client left before the answer had ended. */
  readonly isGone: boolean;
  /** Calls back once when that happens. */
  onGone(left: () => void): void;
  readonly hasBegun: boolean;
  /** For the rest of the answer. */
  provider: string;
  header(name: string, value: string): void;
  /** A whole answer; of a text in ASCII `encoding` is "latin1". */
  json(body: Uint8Array | string, encoding?: "latin1"): void;
  fail(error: ApiError): void;
  /** Part of a stream; resolves when the client has room for more, or left. */
  event(text: string): Promise<void>;
  end(): void;
  tokens(provider: string, used: Tokens): void;
  sinceStartS(): number;
}

/** A client that reads nothing for so long is cut. */
const unreadMs = 60_000;
const json = { "content-type": "application/json" };
const ignore = () => undefined;

export function createClientAnswer(response: HttpResponse, requestId: string, metrics: Metrics): ClientAnswer {
  const started = performance.now();
  const headers: Record<string, string> = { "x-request-id": requestId, "cache-control": "no-store" };
  let hasEnded = false;
  let hasBegun = false;
  let isGone = false;
  let onGone: (() => void) | undefined;
  response.once("close", () => {
    if (hasEnded) return;
    isGone = true;
    onGone?.();
  });
  response.on("error", ignore);
  // Both kinds of answer take these; only their types differ.
  const stream = response as ServerResponse;

  const answer: ClientAnswer = {
    get isGone() {
      return isGone;
    },
    onGone(left) {
      onGone = left;
    },
    provider: "",
    get hasBegun() {
      return hasBegun;
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
      if (isGone) return;
      if (!hasBegun) {
        hasBegun = true;
        stream.writeHead(200, { ...headers, "content-type": "text/event-stream; charset=utf-8" });
      }
      if (stream.write(text)) return;
      await untilRead(stream);
    },
    end() {
      if (hasEnded) return;
      hasEnded = true;
      metrics.answered(200, "ok", answer.provider);
      stream.end();
    },
    tokens: (provider, used) => metrics.tokens(provider, used),
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
    metrics.answered(status, code, answer.provider);
    if (isGone) return;
    const length = encoding === undefined ? Buffer.byteLength(body) : body.length;
    stream.writeHead(status, { ...headers, ...extra, "content-length": String(length) });
    if (encoding === undefined) stream.end(body);
    else stream.end(body, encoding);
  }

  return answer;
}

/** Resolves when the client has read what waits for it, or is gone; one that reads nothing is cut. */
function untilRead(stream: ServerResponse): Promise<void> {
  return new Promise((resolve) => {
    const late = setTimeout(() => stream.destroy(), unreadMs);
    const done = () => {
      clearTimeout(late);
      stream.off("drain", done);
      stream.off("close", done);
      resolve();
    };
    stream.on("drain", done);
    stream.on("close", done);
  });
}
