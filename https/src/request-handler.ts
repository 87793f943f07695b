import type { IncomingMessage, ServerResponse } from "node:http";
import type { Http2ServerRequest, Http2ServerResponse } from "node:http2";

/** A request or response over HTTP/1.1 or HTTP/2. */
export type HttpRequest = IncomingMessage | Http2ServerRequest;
export type HttpResponse = ServerResponse | Http2ServerResponse;

/**
 * Serves a REST or gRPC request. An error that it throws fails only this request. `peer` is the address of the peer, or
 * of the client that a trusted proxy named.
 */
export type RequestHandler = (request: HttpRequest, response: HttpResponse, peer?: string) => void | Promise<void>;
