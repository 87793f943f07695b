import type { OutgoingHttpHeaders, ServerResponse } from "node:http";
import type { ClientAddresses } from "@holdfast/common/client-address.ts";
import { HoldfastError } from "@holdfast/common/errors.ts";
import { lookUp } from "@holdfast/common/look-up.ts";
import type { HttpRequest, HttpResponse } from "@holdfast/https/request-handler.ts";
import { type ResponseHeaders, problemResponse } from "./problem.ts";

/** One HTTP request and its response. */
export interface Exchange {
  readonly request: HttpRequest;
  readonly response: HttpResponse;
  readonly requestId: string;
  /** Path of the request, percent-encoded. */
  readonly path: string;
  /** Query of the request, percent-encoded, without the question mark. */
  readonly query: string;
  /** IP address of the client: from headers of trusted proxies, otherwise the peer's address. */
  readonly source: string;
  /** Headers of the response, also of an error response; names in lower case. */
  readonly responseHeaders: Record<string, string | readonly string[]>;
}

/** Opens the exchange of a new request. */
export function openExchange(
  request: HttpRequest,
  response: HttpResponse,
  requestId: string,
  clients: Pick<ClientAddresses, "addressOf">,
  peer = request.socket?.remoteAddress ?? "",
): Exchange {
  const url = request.url ?? "/";
  const questionMark = url.indexOf("?");
  return {
    request,
    response,
    requestId,
    responseHeaders: {
      "request-id": requestId,
      "cache-control": "no-store",
      "x-content-type-options": "nosniff",
    },
    path: questionMark < 0 ? url : url.slice(0, questionMark),
    query: questionMark < 0 ? "" : url.slice(questionMark + 1),
    source: clients.addressOf(peer, request),
  };
}

/** The value of a header, repeated headers joined by commas; undefined if absent. */
export function headerOf(request: HttpRequest, name: string): string | undefined {
  const value = lookUp(request.headers, name);
  return Array.isArray(value) ? value.join(", ") : value;
}

/** Sends a complete response. HEAD gets the headers of GET without a body. */
export function send(
  { request, response, responseHeaders }: Exchange,
  status: number,
  headers: ResponseHeaders,
  body: string | Uint8Array,
): void {
  if (response.destroyed || response.headersSent) return;
  for (const [name, value] of Object.entries(headers)) responseHeaders[name] = value;
  if (status !== 204) responseHeaders["content-length"] = String(Buffer.byteLength(body));
  (response as ServerResponse).writeHead(status, responseHeaders as OutgoingHttpHeaders);
  if (request.method === "HEAD" || status === 204) response.end();
  else if (body.length <= chunkBytes) response.end(body);
  else sendInChunks(response as ServerResponse, Buffer.from(body as string));
}

/** Size in bytes of the chunks in which larger responses are written, so that a slow client buffers one at most. */
const chunkBytes = 64 * 1024;

function sendInChunks(response: ServerResponse, body: Buffer): void {
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
  const problem = problemResponse(error, problemContextOf(exchange, baseUrl));
  send(exchange, problem.status, problem.headers, problem.body);
}

/** The request that an error's response names. */
export function problemContextOf({ request, requestId }: Exchange, baseUrl: string) {
  return { requestId, baseUrl, fetchDestination: headerOf(request, "sec-fetch-dest") };
}

/** A signal that aborts when the client disconnects, or cancels its HTTP/2 stream, before the response is complete. */
export function clientSignal({ response }: Exchange): AbortSignal {
  const controller = new AbortController();
  const onClose = () => {
    // Node ends the response of a cancelled HTTP/2 stream itself, so that only `writableEnded` shows it.
    if (!response.writableEnded || !response.writableFinished)
      controller.abort(new HoldfastError("STORE_UNAVAILABLE", "The caller disconnected."));
  };
  if (response.destroyed) onClose();
  else response.once("close", onClose);
  return controller.signal;
}
