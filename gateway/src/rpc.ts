import type { DescMessage, DescMethod, Message } from "@bufbuild/protobuf";
import type { FieldMask } from "@bufbuild/protobuf/wkt";
import {
  Code,
  ConnectError,
  type ConnectRouter,
  createConnectRouter,
  createContextKey,
  createContextValues,
  type HandlerContext,
} from "@connectrpc/connect";
import type { UniversalHandler } from "@connectrpc/connect/protocol";
import {
  compressionBrotli,
  compressionGzip,
  universalRequestFromNodeRequest,
  universalResponseToNodeResponse,
} from "@connectrpc/connect-node";
import type { Call, Principal } from "@holdfast/common/call.ts";
import { HoldfastError } from "@holdfast/common/errors.ts";
import { lookUp } from "@holdfast/common/look-up.ts";
import type { CallGuards } from "./call-guards.ts";
import type { Exchange } from "./exchange.ts";
import type { GatewayDeps } from "./gateway-deps.ts";
import { addHealth } from "./health.ts";
import { invalidRequest } from "./input.ts";
import { createEntryChecks } from "./json/entries-max.ts";
import { createFaults } from "./json/faults.ts";
import { type ApiMethod, publicBodyBytes } from "./method.ts";
import { compileNameCheck } from "./plain-names.ts";
import type { PublicRateLimit, StreamRateLimit } from "./public-rate-limit.ts";
import { addReflection } from "./reflection.ts";
import { presentedBy, readIfMatch, readRevision } from "./request-headers.ts";
import { boundedResponse, countingBody, sentBytes } from "./rpc-body.ts";
import { toConnectError } from "./rpc-error.ts";

/** The API methods over gRPC, gRPC-Web and Connect, with the same guards as REST. */
export interface Rpc {
  /** True for the path of a method, and for every request with a content type of gRPC. */
  accepts(exchange: Exchange): boolean;
  /** True for bidirectional streams, whose request bodies have no fixed end. */
  streams(exchange: Exchange): boolean;
  handle(exchange: Exchange): Promise<void>;
}

const exchangeKey = createContextKey<Exchange | undefined>(undefined, { description: "the HTTP exchange of a call" });
/** The principal that the gate admitted. */
const principalKey = createContextKey<Principal | undefined>(undefined, { description: "the caller of a call" });
const none: ReadonlySet<string> = new Set();

/** Serves all methods, server reflection and health checks. */
export function createRpc(
  methods: readonly ApiMethod[],
  deps: GatewayDeps,
  { gate, validation, reportRefusal, expensiveCalls, waitForRevision }: CallGuards,
): Rpc {
  const entryChecks = createEntryChecks();

  const limited = (
    context: HandlerContext,
    act: (publicRateLimit: PublicRateLimit, source: string) => () => void,
  ): (() => void) => {
    const { source, requestId } = exchangeOf(context);
    try {
      return deps.publicRateLimit === undefined ? noRelease : act(deps.publicRateLimit, source);
    } catch (error) {
      throw toConnectError(HoldfastError.from(error), requestId, deps.baseUrl);
    }
  };
  const rateLimit: StreamRateLimit = {
    take(context) {
      limited(context, (publicRateLimit, source) => {
        publicRateLimit.take(source);
        return noRelease;
      });
    },
    stream: (context) => limited(context, (publicRateLimit, source) => publicRateLimit.stream(source)),
  };

  function routes(router: ConnectRouter): void {
    for (const method of methods) {
      const description = method.description as DescMethod & { methodKind: "unary" };
      const requestGate = gateOf(method);
      router.rpc(description, handlerOf(method) as never, { readMaxBytes: method.maxBodyBytes, requestGate });
    }
    addReflection(router, [...new Set(methods.map((method) => method.description.parent))], rateLimit);
    addHealth(router, deps, rateLimit);
  }

  /** Authenticates and authorizes a call before its message is read. */
  function gateOf(method: ApiMethod) {
    const subject = "orgId" in method.description.input.field ? "unread" : undefined;
    return async (context: HandlerContext): Promise<void> => {
      const exchange = exchangeOf(context);
      try {
        if (method.scope === "public") deps.publicRateLimit?.take(exchange.source);
        const principal = await gate.admit(method, presentedBy(exchange, subject), (name, value) =>
          context.responseHeader.set(name, value),
        );
        context.values.set(principalKey, principal);
      } catch (thrown) {
        throw refusalOf(method, exchange, thrown);
      }
    };
  }

  /** The admitted caller; a member of several organizations acts in the organization that the message names. */
  async function callerOf(method: ApiMethod, message: Message, context: HandlerContext, exchange: Exchange) {
    const principal = context.values.get(principalKey);
    const { orgId } = message as { orgId?: string };
    if (principal?.needsOrganization !== true || orgId === undefined) return principal;
    return gate.reauthorize(method, presentedBy(exchange, orgId));
  }

  function refusalOf(method: ApiMethod, { requestId }: Exchange, thrown: unknown): ConnectError {
    const error = HoldfastError.from(thrown);
    if (error.key === "INTERNAL") deps.log.error("call failed", { method: method.name, requestId, error: thrown });
    return toConnectError(error, requestId, deps.baseUrl);
  }

  function handlerOf(method: ApiMethod) {
    const { input } = method.description;
    const checkEntries = entryChecks(input);
    const checkNames = compileNameCheck(input, method.rest?.pathFields ?? []);
    const mask = input.fields.find((field) => field.message?.typeName === "google.protobuf.FieldMask")?.localName;
    return async (message: Message, context: HandlerContext): Promise<object> => {
      const exchange = exchangeOf(context);
      try {
        const header = (name: string) => context.requestHeader.get(name) ?? undefined;
        const principal = await callerOf(method, message, context, exchange);
        gate.weigh(method, principal, sentBytes(context));
        const faults = createFaults();
        const ifMatch = readIfMatch(header("if-match"), faults);
        const minRevision = readRevision(header("holdfast-revision"), faults);
        if (mask !== undefined) checkMask(input, lookUp(message, mask) as FieldMask | undefined, faults);
        checkEntries(message, faults);
        const tooLong = faults.list.length > 0;
        if (!tooLong) {
          validation.check(input, message, none, faults);
          checkNames(message, faults);
        }
        const call: Call = {
          requestId: exchange.requestId,
          principal,
          source: exchange.source,
          signal: context.signal,
          // Idempotency-Key is only supported in REST; a gRPC client reads before it retries.
          idempotency: undefined,
          ifMatch,
          minRevision,
          setHeader: (name, value) => context.responseHeader.set(name, value),
        };
        if (method.check !== undefined && !tooLong) faults.add(await method.check(message, call));
        if (faults.list.length > 0) {
          const error = invalidRequest(faults);
          reportRefusal(method, { ...exchange, principal, error, input: message });
          throw error;
        }
        await waitForRevision(method, call);
        context.responseHeader.set("request-id", exchange.requestId);
        const release = method.weight > 1 ? expensiveCalls.take(principal) : undefined;
        try {
          return await method.handle(message, call);
        } finally {
          release?.();
        }
      } catch (thrown) {
        throw refusalOf(method, exchange, thrown);
      }
    };
  }

  const router = createConnectRouter({
    acceptCompression: [compressionGzip, compressionBrotli],
    // The limit of reflection and health; methods of the API have their limits.
    readMaxBytes: publicBodyBytes,
    maxTimeoutMs: 10 * 60_000,
    // A misspelled field is an error in Connect's JSON, like in REST.
    jsonOptions: { ignoreUnknownFields: false },
    // Methods do not read unknown fields of newer clients, so they are skipped.
    binaryOptions: { readUnknownFields: false },
  });
  routes(router);
  const handlers = new Map(router.handlers.map((handler) => [handler.requestPath, handler]));

  async function respond(exchange: Exchange, handler: UniversalHandler): Promise<void> {
    const { request, response } = exchange;
    const values = createContextValues().set(exchangeKey, exchange);
    try {
      const counted = countingBody(universalRequestFromNodeRequest(request, response, undefined, values));
      await universalResponseToNodeResponse(await boundedResponse(await handler(counted)), response);
    } catch (error) {
      // The client has disconnected.
      if (ConnectError.from(error).code === Code.Aborted) return;
      deps.log.error("sending a response failed", { requestId: exchange.requestId, path: exchange.path, error });
      response.destroy();
    }
  }

  return {
    accepts: ({ path, request }) => handlers.has(path) || isGrpc(request.headers["content-type"]),
    streams: ({ path }) => handlers.get(path)?.method.methodKind === "bidi_streaming",
    async handle(exchange) {
      const handler = handlers.get(exchange.path);
      // Streams in Connect's JSON are not supported: their errors would be in trailers.
      const isJsonStream = exchange.request.headers["content-type"]?.includes("+json") === true;
      if (handler === undefined || isJsonStream) return unimplemented(exchange);
      await respond(exchange, handler);
    },
  };
}

function noRelease(): void {
  // Without a limit there is nothing to release.
}

function exchangeOf(context: HandlerContext): Exchange {
  const exchange = context.values.get(exchangeKey);
  if (exchange === undefined) throw new Error("the call has no HTTP exchange");
  return exchange;
}

/** Checks update_mask. In REST the keys of the body are the mask; gRPC callers send it. */
function checkMask(input: DescMessage, mask: FieldMask | undefined, faults: ReturnType<typeof createFaults>): void {
  const path = { parent: undefined, key: "update_mask" };
  if (mask === undefined || mask.paths.length === 0)
    return faults.at(path, "required", "must name the fields to change");
  for (const name of mask.paths) {
    const isField = input.fields.some(
      (field) => field.name === name && field.message?.typeName !== "google.protobuf.FieldMask",
    );
    if (!isField) faults.at(path, "unknown_field", `must name fields of the request; ${name} is not one`);
  }
}

function isGrpc(contentType: string | undefined): boolean {
  return contentType?.startsWith("application/grpc") === true;
}

/** UNIMPLEMENTED as a trailers-only response: one HEADERS frame that ends the stream. */
function unimplemented({ request, response, requestId }: Exchange): void {
  const headers = {
    "content-type": "application/grpc",
    "grpc-status": "12",
    "grpc-message": "no such method",
    "request-id": requestId,
  };
  // writeHead would send the headers in a separate frame.
  for (const [name, value] of Object.entries(headers)) response.setHeader(name, value);
  request.resume();
  response.end();
}
