import { createClientAddresses } from "@holdfast/common/client-address.ts";
import { HoldfastError } from "@holdfast/common/errors.ts";
import type { RequestHandler } from "@holdfast/https/request-handler.ts";
import { defaultBodyTimeoutMs, limitBodyTime } from "./body.ts";
import { createCallGuards } from "./call-guards.ts";
import { createConsole } from "./console/console.ts";
import { createDocs } from "./docs/docs.ts";
import { openExchange, send, sendProblem } from "./exchange.ts";
import type { GatewayDeps } from "./gateway-deps.ts";
import { describeMethods } from "./method.ts";
import { createDispatch, type Mount } from "./mounts.ts";
import { ownerMethods } from "./owner-paths.ts";
import { createOpenApi } from "./openapi/openapi.ts";
import { createRest } from "./rest.ts";
import { createRpc } from "./rpc.ts";

/**
 * The gateway translates HTTP into calls of API methods. A request goes to the first mount that accepts it: gRPC (with
 * Connect and gRPC-Web), pages such as /healthz and /openapi.json, the documentation below /docs, the console below
 * /console/, and REST for all other paths. REST and gRPC are compiled from the same descriptors and share their guards:
 * origin, credential, rate, scope, validation and concurrency. A handler receives a message and a `Call` and returns a
 * message; an error of any kind becomes a problem document (RFC 9457) or a gRPC status of the same code.
 *
 * Throws at creation if a method declares no scope, has no implementation or cannot be encoded as JSON.
 */
export function createGateway(deps: GatewayDeps): RequestHandler {
  const declared = describeMethods(deps.services);
  const methods = [...declared, ...ownerMethods(declared, deps.ownerPaths ?? [])];
  const guards = createCallGuards(deps);
  const rpc = createRpc(declared, deps, guards);
  // Made by the first request for it: it takes most of the time of a start, and few processes are asked.
  let openApi: string | undefined;
  const docs = createDocs(methods);
  const fail: Mount["fail"] = (exchange, error) => sendProblem(exchange, error, deps.baseUrl);

  const gatewayMounts: readonly Mount[] = [
    { name: "rpc", prefix: "/", accepts: rpc.accepts, handle: rpc.handle, fail },
    page("health", "/healthz", () => {
      if (deps.ready()) return '{"status":"ready"}';
      throw new HoldfastError("STORE_UNAVAILABLE", "This process is not ready yet.");
    }),
    page(
      "openapi",
      "/openapi.json",
      () => (openApi ??= JSON.stringify(createOpenApi(methods, guards.validation, deps.baseUrl, deps))),
    ),
    limited({
      name: "docs",
      prefix: "/docs",
      accepts: ({ path }) => path === "/docs" || path.startsWith("/docs/"),
      handle: docs,
      fail,
    }),
    ...(deps.console === undefined ? [] : [limited(createConsole(deps.console, fail))]),
    { name: "management", prefix: "/", handle: createRest(methods, deps, guards), fail },
  ];
  const mounts = [...(deps.mounts ?? []), ...gatewayMounts.map(timed)];

  /** Limits the transfer time of request bodies, except of gRPC streams, whose bodies have no fixed end. */
  function timed(mount: Mount): Mount {
    return {
      ...mount,
      handle(exchange) {
        if (!rpc.streams(exchange)) limitBodyTime(exchange.request, deps.bodyTimeoutMs ?? defaultBodyTimeoutMs);
        return mount.handle(exchange);
      },
    };
  }

  /** Charges requests to a mount without credentials to their source address. */
  function limited(mount: Mount): Mount {
    return {
      ...mount,
      handle: async (exchange) => {
        deps.publicRateLimit?.take(exchange.source);
        await mount.handle(exchange);
      },
    };
  }

  /** A read-only JSON document at one path. */
  function page(name: string, path: string, body: () => string): Mount {
    return {
      name,
      prefix: path,
      accepts: (exchange) => exchange.path === path,
      handle: async (exchange) => {
        deps.publicRateLimit?.take(exchange.source);
        const { method } = exchange.request;
        if (method !== "GET" && method !== "HEAD") {
          throw new HoldfastError("METHOD_NOT_ALLOWED", "The document is read-only.", { allow: ["GET", "HEAD"] });
        }
        send(exchange, 200, { "content-type": "application/json" }, body());
      },
      fail,
    };
  }

  const dispatch = createDispatch(mounts, ({ requestId, path, request }, mount, error) => {
    deps.log.error("request failed", { requestId, mount: mount.name, method: request.method, path, error });
  });
  const clients = deps.clients ?? createClientAddresses({ trustedProxies: [], balancers: [] });
  return async (request, response, peer) => dispatch(openExchange(request, response, deps.newId(), clients, peer));
}
