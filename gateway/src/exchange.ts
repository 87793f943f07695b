import type { OutgoingHttpHeaders, ServerResponse } from "node:http";
import type { ClientAddresses } from "@holdfast/common/client-address.ts";
import { HoldfastError } from "@holdfast/common/errors.ts";
import { lookUp } from "@holdfast/common/look-up.ts";
import type { HttpRequest, HttpResponse } from "@holdfast/https/request-handler.ts";
import { type AnswerHeaders, problemAnswer } from "./problem.ts";

/** One HTTP request on its way through the gateway. */
export interface Exchange {
  readonly request: HttpRequest;
  readonly response: HttpResponse;
  readonly requestId: string;
  /** As sent, still percent-encoded. */
  readonly path: string;
  /** Without the question mark. */
  readonly query: string;
  /** Address of the client, as trusted proxies tell it; of the peer where there are none. */
  readonly source: string;
  /** Headers of the answer, also of an error; names in lower case. */
  readonly answerHeaders: Record<string, string | readonly string[]>;
}

/** What is known of a request before anything of it is judged. */
export function openExchange(
  request: HttpRequest,
  response: HttpResponse,
  requestId: string,
  clients: Pick<ClientAddresses, "of">,
  peer = request.socket?.remoteAddress ?? "",
): Exchange {
  const url = request.url ?? "/";
  const mark = url.indexOf("?");
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
    source: clients.of(peer, request),
  };
}

/** The text of a header; undefined when absent. */
export function headerOf(request: HttpRequest, name: string): string | undefined {
  const value = lookUp(request.headers, name);
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
  for (const [name, value] of Object.entries(headers)) answerHeaders[name] = value;
  if (status !== 204) answerHeaders["content-length"] = String(Buffer.byteLength(body));
  (response as ServerResponse).writeHead(status, answerHeaders as OutgoingHttpHeaders);
  if (request.method === "HEAD" || status === 204) response.end();
  else if (body.length <= chunkBytes) response.end(body);
  else sendSlowly(response as ServerResponse, Buffer.from(body as string));
}

/** A larger answer is written as the client reads it, so that a slow reader holds no more than this. */
const chunkBytes = 64 * 1024;

function sendSlowly(response: ServerResponse, body: Buffer): void {
  let at = 0;
  const write = () => {
    while (at < body.length) {
      const chunk = body.subarray(at, at + chunkBytes);
      at += chunk.length;
      if (at >= body.length) {
        response.end(chunk);
        return;
      }
      if (!response.write(chunk)) {
        response.once("drain", write);
        return;
      }
    }
  };
  write();
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
