import type { DescMessage, DescMethod, Message } from "@bufbuild/protobuf";
import type { FieldMask } from "@bufbuild/protobuf/wkt";
import { type ConnectRouter, type HandlerContext, createContextKey, createContextValues } from "@connectrpc/connect";
import { connectNodeAdapter } from "@connectrpc/connect-node";
import type { Call } from "@holdfast/common/call.ts";
import { HoldfastError } from "@holdfast/common/errors.ts";
import type { Entrance } from "./entrance.ts";
import type { Exchange } from "./exchange.ts";
import type { GatewayDeps } from "./gateway-deps.ts";
import { addHealth } from "./health.ts";
import { invalidRequest } from "./input.ts";
import { createFaults } from "./json/faults.ts";
import { type ApiMethod, defaultMaxBodyBytes } from "./method.ts";
import { addReflection } from "./reflection.ts";
import { readIfMatch, readRevision, revisionWaitMs } from "./request-headers.ts";
import { toConnectError } from "./rpc-error.ts";

/** The same methods over gRPC, gRPC-Web and Connect, behind the same gate. */
export interface Rpc {
  /** True for a path of a method here, or any request in gRPC's own content type. */
  accepts(exchange: Exchange): boolean;
  handle(exchange: Exchange): void;
}

const exchangeKey = createContextKey<Exchange | undefined>(undefined, { description: "the HTTP request of a call" });
const none: ReadonlySet<string> = new Set();

/** Serves all methods, with reflection and health beside them. */
export function createRpc(
  methods: readonly ApiMethod[],
  deps: GatewayDeps,
  { gate, validation, refused }: Entrance,
): Rpc {
  const exchanges = new WeakMap<object, Exchange>();
  const paths = new Set<string>();

  function routes(router: ConnectRouter): void {
    for (const method of methods) {
      const description = method.description as DescMethod & { methodKind: "unary" };
      router.rpc(description, handlerOf(method) as never, { readMaxBytes: method.maxBodyBytes });
    }
    addReflection(router, [...new Set(methods.map((method) => method.description.parent))]);
    addHealth(router, deps);
    for (const handler of router.handlers) paths.add(handler.requestPath);
  }

  function handlerOf(method: ApiMethod) {
    const { input } = method.description;
    const mask = input.fields.find((field) => field.message?.typeName === "google.protobuf.FieldMask")?.localName;
    return async (message: Message, context: HandlerContext): Promise<object> => {
      const exchange = context.values.get(exchangeKey);
      if (exchange === undefined) throw new Error("a call came without its request");
      try {
        const header = (name: string) => context.requestHeader.get(name) ?? undefined;
        const principal = await gate.admit(
          method,
          {
            authorization: header("authorization"),
            organization: header("holdfast-organization"),
            fetchSite: header("sec-fetch-site"),
            source: exchange.source,
            requestId: exchange.requestId,
            subject: (message as { orgId?: string }).orgId,
          },
          (name, value) => context.responseHeader.set(name, value),
        );
        const faults = createFaults();
        const ifMatch = readIfMatch(header("if-match"), faults);
        const minRevision = readRevision(header("holdfast-revision"), faults);
        if (mask !== undefined)
          checkMask(input, (message as Message & Record<string, unknown>)[mask] as FieldMask | undefined, faults);
        validation.check(input, message, none, faults);
        const call: Call = {
          requestId: exchange.requestId,
          principal,
          source: exchange.source,
          signal: context.signal,
          // Keys belong to POST requests of REST; a gRPC client that retries reads first.
          idempotency: undefined,
          ifMatch,
          minRevision,
          setHeader: (name, value) => context.responseHeader.set(name, value),
        };
        if (method.check !== undefined) faults.add(method.check(message, call));
        if (faults.list.length > 0) {
          const error = invalidRequest(faults);
          refused(method, { ...exchange, principal, error, input: message });
          throw error;
        }
        if (minRevision !== undefined && method.readOnly) await deps.reached(minRevision, revisionWaitMs);
        context.responseHeader.set("request-id", exchange.requestId);
        return await method.handle(message, call);
      } catch (thrown) {
        const error = HoldfastError.from(thrown);
        if (error.key === "INTERNAL") {
          deps.log.error("call failed", { method: method.name, requestId: exchange.requestId, error: thrown });
        }
        throw toConnectError(error, exchange.requestId, deps.baseUrl);
      }
    };
  }

  const handler = connectNodeAdapter({
    routes,
    // Of what has no limit of its own: reflection and health.
    readMaxBytes: defaultMaxBodyBytes,
    maxTimeoutMs: 10 * 60_000,
    // A field that is misspelled is not passed over, in Connect's JSON as little as in REST's.
    jsonOptions: { ignoreUnknownFields: false },
    contextValues: (request) => createContextValues().set(exchangeKey, exchanges.get(request)),
  });

  return {
    accepts: ({ path, request }) => paths.has(path) || isGrpc(request.headers["content-type"]),
    handle(exchange) {
      if (!paths.has(exchange.path)) return unimplemented(exchange);
      exchanges.set(exchange.request, exchange);
      handler(exchange.request, exchange.response);
    },
  };
}

/** Over REST the keys of the body are the mask; here the caller must say what to change. */
function checkMask(input: DescMessage, mask: FieldMask | undefined, faults: ReturnType<typeof createFaults>): void {
  const place = { parent: undefined, key: "update_mask" };
  if (mask === undefined || mask.paths.length === 0)
    return faults.at(place, "required", "must name the fields to change");
  for (const path of mask.paths) {
    const known = input.fields.some(
      (field) => field.name === path && field.message?.typeName !== "google.protobuf.FieldMask",
    );
    if (!known) faults.at(place, "unknown_field", `must name fields of the request; ${path} is none`);
  }
}

function isGrpc(contentType: string | undefined): boolean {
  return contentType?.startsWith("application/grpc") === true;
}

/** gRPC's own answer for a method that is not there: one frame of headers that ends the stream. */
function unimplemented({ request, response, requestId }: Exchange): void {
  const headers = {
    "content-type": "application/grpc",
    "grpc-status": "12",
    "grpc-message": "no such method",
    "request-id": requestId,
  };
  // Not writeHead, which would send the headers in a frame of their own.
  for (const [name, value] of Object.entries(headers)) response.setHeader(name, value);
  request.resume();
  response.end();
}
