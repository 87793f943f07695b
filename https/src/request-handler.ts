import type { IncomingMessage, ServerResponse } from "node:http";
import type { Http2ServerRequest, Http2ServerResponse } from "node:http2";

/** A request over HTTP/1.1 or h2; likewise the answer. */
export type HttpRequest = IncomingMessage | Http2ServerRequest;
export type HttpResponse = ServerResponse | Http2ServerResponse;

/**
 * Answers HTTP requests of both versions, REST and gRPC. What it throws, or rejects with, ends its own request alone. `peer` is the
 * address of the connection's other end, or the one that a trusted proxy named for it.
 */
export type RequestHandler = (request: HttpRequest, response: HttpResponse, peer?: string) => void | Promise<void>;
