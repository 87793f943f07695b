import { HoldfastError } from "@holdfast/common/errors.ts";
import { createDocs } from "./docs/docs.ts";
import { openExchange, type RequestHandler, send, sendProblem } from "./exchange.ts";
import { createGate } from "./gate.ts";
import type { GatewayDeps } from "./gateway-deps.ts";
import { describeMethods } from "./method.ts";
import { createDispatch, type Mount } from "./mounts.ts";
import { createOpenApi } from "./openapi/openapi.ts";
import { createRefusals } from "./refusals.ts";
import { createRest } from "./rest.ts";
import { createRpc } from "./rpc.ts";
import { createValidation } from "./validation.ts";

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
