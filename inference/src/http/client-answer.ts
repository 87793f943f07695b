import { once } from "node:events";
import type { ServerResponse } from "node:http";
import type { HttpResponse } from "@holdfast/https/request-handler.ts";
import type { Tokens } from "../journal/journal-state.ts";
import type { Metrics } from "../metrics.ts";
import { type ApiError, errorBody } from "./api-error.ts";

/** The answer to one request. What is said after its client left goes nowhere. */
export interface ClientAnswer {
  /** Aborts when the client leaves before its answer has ended. */
  readonly gone: AbortSignal;
  readonly hasBegun: boolean;
  /** For the rest of the answer. */
  provider: string;
  header(name: string, value: string): void;
  /** A whole answer. */
  json(body: Uint8Array | string): void;
  fail(error: ApiError): void;
  /** Part of a stream; resolves when the client has room for more, or left. */
  event(text: string): Promise<void>;
  end(): void;
  tokens(provider: string, used: Tokens): void;
  sinceStartS(): number;
}

/** A client that reads nothing for so long is cut. */
const unreadMs = 60_000;

export function createClientAnswer(response: HttpResponse, requestId: string, metrics: Metrics): ClientAnswer {
  const started = performance.now();
  const left = new AbortController();
  const headers: Record<string, string> = { "x-request-id": requestId, "cache-control": "no-store" };
  let hasEnded = false;
  let hasBegun = false;
  response.once("close", () => {
    if (!hasEnded) left.abort(new Error("the client left"));
  });
  response.on("error", () => undefined);
  // Both kinds of answer take these; only their types differ.
  const stream = response as ServerResponse;

  const answer: ClientAnswer = {
    gone: left.signal,
    provider: "",
    get hasBegun() {
      return hasBegun;
    },
    header(name, value) {
      headers[name] = value;
    },
    json(body) {
      finish(200, "ok", { "content-type": "application/json" }, body);
    },
    fail(error) {
      const extra = { "content-type": "application/json", ...error.headers };
      finish(error.status, error.code, extra, errorBody(error));
    },
    async event(text) {
      if (left.signal.aborted) return;
      if (!hasBegun) {
        hasBegun = true;
        stream.writeHead(200, { ...headers, "content-type": "text/event-stream; charset=utf-8" });
      }
      if (stream.write(text)) return;
      const drained = once(stream, "drain", { signal: AbortSignal.any([left.signal, AbortSignal.timeout(unreadMs)]) });
      await drained.catch(() => {
        if (!left.signal.aborted) response.destroy();
      });
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

  function finish(status: number, code: string, extra: Record<string, string>, body: Uint8Array | string): void {
    if (hasEnded) return;
    hasEnded = true;
    metrics.answered(status, code, answer.provider);
    if (left.signal.aborted) return;
    stream.writeHead(status, { ...headers, ...extra, "content-length": String(Buffer.byteLength(body)) });
    stream.end(body);
  }

  return answer;
}
