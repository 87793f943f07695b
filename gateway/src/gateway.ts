import { createClientAddresses } from "@holdfast/common/client-address.ts";
import { HoldfastError } from "@holdfast/common/errors.ts";
import type { RequestHandler } from "@holdfast/https/request-handler.ts";
import { limitBodyTime, usualBodyMs } from "./body-time.ts";
import { createDocs } from "./docs/docs.ts";
import { openExchange, send, sendProblem } from "./exchange.ts";
import { createGate } from "./gate.ts";
import type { GatewayDeps } from "./gateway-deps.ts";
import { describeMethods } from "./method.ts";
import { createDispatch, type Mount } from "./mounts.ts";
import { createOpenApi } from "./openapi/openapi.ts";
import { createPlaces } from "./places.ts";
import { createRefusals } from "./refusals.ts";
import { createRest } from "./rest.ts";
import { createRevisionWaits } from "./revision-waits.ts";
import { createRpc } from "./rpc.ts";
import { createValidation } from "./validation.ts";

/** Each asks a machine or the history, and may take seconds. */
const dearLimits = { credential: 16, organization: 48, all: 256 };

/** Throws when a method declares no scope, has no implementation or cannot be told in JSON. */
export function createGateway(deps: GatewayDeps): RequestHandler {
  const methods = describeMethods(deps.services);
  const validation = createValidation();
  const refused = createRefusals(deps.refused);
  const gate = createGate({ ...deps, refused });
  const dear = createPlaces(deps.places?.dear ?? dearLimits, "calls of this kind");
  const shown = createRevisionWaits(deps);
  const entrance = { gate, validation, refused, dear, shown };
  const rpc = createRpc(methods, deps, entrance);
  const openApi = JSON.stringify(createOpenApi(methods, validation, deps.baseUrl, deps));
  const docs = createDocs(methods);
  const fail: Mount["fail"] = (exchange, error) => sendProblem(exchange, error, deps.baseUrl);

  const own: readonly Mount[] = [
    { name: "rpc", prefix: "/", accepts: rpc.accepts, handle: rpc.handle, fail },
    page("health", "/healthz", () => {
      if (deps.ready()) return '{"status":"ready"}';
      throw new HoldfastError("STORE_UNAVAILABLE", "This process cannot answer yet.");
    }),
    page("openapi", "/openapi.json", () => openApi),
    {
      name: "docs",
      prefix: "/docs",
      accepts: ({ path }) => path === "/docs" || path.startsWith("/docs/"),
      handle: async (exchange) => {
        deps.publicPace?.take(exchange.source);
        await docs(exchange);
      },
      fail,
    },
    { name: "management", prefix: "/", handle: createRest(methods, deps, entrance), fail },
  ];
  const mounts = [...(deps.mounts ?? []), ...own.map(timed)];

  /** Calls of gRPC that stream have no end to their body. */
  function timed(mount: Mount): Mount {
    return {
      ...mount,
      handle(exchange) {
        if (!rpc.streams(exchange)) limitBodyTime(exchange.request, deps.bodyMs ?? usualBodyMs);
        return mount.handle(exchange);
      },
    };
  }

  /** One document at one path. */
  function page(name: string, path: string, body: () => string): Mount {
    return {
      name,
      prefix: path,
      accepts: (exchange) => exchange.path === path,
      handle: async (exchange) => {
        deps.publicPace?.take(exchange.source);
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
  const clients = deps.clients ?? createClientAddresses({ trustedProxies: [], balancers: [] });
  return async (request, response, peer) => dispatch(openExchange(request, response, deps.newId(), clients, peer));
}
