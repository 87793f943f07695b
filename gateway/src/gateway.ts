import type { Authenticator, RefusedCall, ServedService } from "@holdfast/common/call.ts";
import type { Clock } from "@holdfast/common/clock.ts";
import { HoldfastError } from "@holdfast/common/errors.ts";
import type { Log } from "@holdfast/common/log.ts";
import { createDocs } from "./docs/docs.ts";
import { type HttpRequest, type HttpResponse, openExchange, send, sendProblem } from "./exchange.ts";
import { createGate, type Gate } from "./gate.ts";
import type { KeptAnswers } from "./kept-answers.ts";
import { describeMethods } from "./method.ts";
import { createDispatch, type Mount } from "./mounts.ts";
import { createOpenApi } from "./openapi/openapi.ts";
import type { RateLimitOptions } from "./rate-limit.ts";
import { createRefusals, type TellRefused } from "./refusals.ts";
import { createRest } from "./rest.ts";
import { createRpc } from "./rpc.ts";
import { createValidation, type Validation } from "./validation.ts";

export interface GatewayDeps {
  readonly services: readonly ServedService[];
  readonly authenticator: Authenticator;
  /** How many requests one credential may make in a window; none when absent. */
  readonly rateLimit?: RateLimitOptions;
  /** Told of each change that was refused before its method saw it. */
  readonly refused?: (refused: RefusedCall) => void;
  readonly keptAnswers: KeptAnswers;
  /** What the platform sends to others, as OpenAPI describes it below `webhooks`. */
  readonly webhooks?: Readonly<Record<string, unknown>>;
  /** Resolves when reads show this revision; rejects with STORE_UNAVAILABLE after timeoutMs. */
  reached(revision: bigint, timeoutMs: number): Promise<void>;
  /** Can this process answer now? For /healthz and grpc.health.v1. */
  ready(): boolean;
  /** Without a slash at its end. */
  readonly baseUrl: string;
  /** Asked before the gateway's own mounts. */
  readonly mounts?: readonly Mount[];
  readonly log: Log;
  readonly clock: Clock;
  /** A UUID for each request. */
  newId(): string;
}

/** What REST and gRPC share. */
export interface Entrance {
  readonly gate: Gate;
  readonly validation: Validation;
  readonly refused: TellRefused;
}

/** Answers HTTP requests of both versions, REST and gRPC. Never throws. */
export type RequestHandler = (request: HttpRequest, response: HttpResponse) => void;

/** Throws when a method declares no scope, has no implementation or cannot be told in JSON. */
export function createGateway(deps: GatewayDeps): RequestHandler {
  const methods = describeMethods(deps.services);
  const validation = createValidation();
  const refused = createRefusals(deps.refused);
  const gate = createGate({ ...deps, refused });
  const rpc = createRpc(methods, deps, { gate, validation, refused });
  const openApi = JSON.stringify(createOpenApi(methods, validation, deps.baseUrl, deps.webhooks));
  const docs = createDocs(methods);
  const fail: Mount["fail"] = (exchange, error) => sendProblem(exchange, error, deps.baseUrl);

  const mounts: readonly Mount[] = [
    ...(deps.mounts ?? []),
    { name: "rpc", prefix: "/", accepts: rpc.accepts, handle: async (exchange) => rpc.handle(exchange), fail },
    page("health", "/healthz", () => {
      if (deps.ready()) return '{"status":"ready"}';
      throw new HoldfastError("STORE_UNAVAILABLE", "This process cannot answer yet.");
    }),
    page("openapi", "/openapi.json", () => openApi),
    {
      name: "docs",
      prefix: "/docs",
      accepts: ({ path }) => path === "/docs" || path.startsWith("/docs/"),
      handle: docs,
      fail,
    },
    { name: "management", prefix: "/", handle: createRest(methods, deps, { gate, validation, refused }), fail },
  ];

  /** One document at one path. */
  function page(name: string, path: string, body: () => string): Mount {
    return {
      name,
      prefix: path,
      accepts: (exchange) => exchange.path === path,
      handle: async (exchange) => {
        const { method } = exchange.request;
        if (method !== "GET" && method !== "HEAD") {
          throw new HoldfastError("METHOD_NOT_ALLOWED", "The document is read only.", { allow: ["GET", "HEAD"] });
        }
        send(exchange, 200, { "content-type": "application/json" }, body());
      },
      fail,
    };
  }

  const dispatch = createDispatch(mounts, ({ requestId, path, request }, mount, error) => {
    deps.log.error("request failed", { requestId, mount: mount.name, method: request.method, path, error });
  });
  return (request, response) => {
    const exchange = openExchange(request, response, deps.newId());
    dispatch(exchange).catch((error: unknown) => {
      deps.log.error("answer failed", { requestId: exchange.requestId, path: exchange.path, error });
      response.destroy();
    });
  };
}
