import type { IncomingMessage, OutgoingHttpHeaders, ServerResponse } from "node:http";
import type { Http2ServerRequest, Http2ServerResponse } from "node:http2";
import { HoldfastError } from "@holdfast/common/errors.ts";
import { type AnswerHeaders, problemAnswer } from "./problem.ts";

/** A request over HTTP/1.1 or h2; likewise the answer. */
export type HttpRequest = IncomingMessage | Http2ServerRequest;
export type HttpResponse = ServerResponse | Http2ServerResponse;

/** Answers HTTP requests of both versions, REST and gRPC. Never throws. */
export type RequestHandler = (request: HttpRequest, response: HttpResponse) => void;

/** One HTTP request on its way through the gateway. */
export interface Exchange {
  readonly request: HttpRequest;
  readonly response: HttpResponse;
  readonly requestId: string;
  /** As sent, still percent-encoded. */
  readonly path: string;
  /** Without the question mark. */
  readonly query: string;
  /** Address of the peer. Headers that claim another one are not believed. */
  readonly source: string;
  /** Headers of the answer, whatever it will be; names in lower case. */
  readonly answerHeaders: Record<string, string | readonly string[]>;
}

/** What is known of a request before anything of it is judged. */
export function openExchange(request: HttpRequest, response: HttpResponse, requestId: string): Exchange {
  const url = request.url ?? "/";
  const mark = url.indexOf("?");
  const source = request.socket?.remoteAddress ?? "";
  return {
    request,
    response,
    requestId,
    answerHeaders: {
      "request-id": requestId,
      "cache-control": "no-store",
      "x-content-type-options": "nosniff",
    },
    path: mark < 0 ? url : url.slice(0, mark),
    query: mark < 0 ? "" : url.slice(mark + 1),
    source: source.startsWith("::ffff:") ? source.slice(7) : source,
  };
}

/** The text of a header; undefined when absent. */
export function headerOf(request: HttpRequest, name: string): string | undefined {
  const value = request.headers[name];
  return Array.isArray(value) ? value.join(", ") : value;
}

/** Sends a whole answer. HEAD gets the headers of GET and no body. */
export function send(
  { request, response, answerHeaders }: Exchange,
  status: number,
  headers: AnswerHeaders,
  body: string | Uint8Array,
): void {
  if (response.destroyed || response.headersSent) return;
  for (const name in headers) answerHeaders[name] = headers[name] ?? "";
  if (status !== 204) answerHeaders["content-length"] = String(Buffer.byteLength(body));
  (response as ServerResponse).writeHead(status, answerHeaders as OutgoingHttpHeaders);
  if (request.method === "HEAD" || status === 204) response.end();
  else response.end(body);
}

/** Sends an error as a problem document. */
export function sendProblem(exchange: Exchange, error: HoldfastError, baseUrl: string): void {
  const answer = problemAnswer(error, exchange.requestId, baseUrl);
  send(exchange, answer.status, answer.headers, answer.body);
}

/** A signal that aborts when the client leaves before its answer ended. */
export function clientSignal({ response }: Exchange): AbortSignal {
  const controller = new AbortController();
  const leave = () => {
    if (!response.writableFinished) controller.abort(new HoldfastError("STORE_UNAVAILABLE", "The caller left."));
  };
  if (response.destroyed) leave();
  else response.once("close", leave);
  return controller.signal;
}
