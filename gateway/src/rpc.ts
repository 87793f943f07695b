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
import { boundedAnswer } from "./bounded-answer.ts";
import type { Entrance } from "./entrance.ts";
import type { Exchange } from "./exchange.ts";
import type { GatewayDeps } from "./gateway-deps.ts";
import { addHealth } from "./health.ts";
import { invalidRequest } from "./input.ts";
import { createEntryChecks } from "./json/entries-max.ts";
import { createFaults } from "./json/faults.ts";
import { type ApiMethod, publicBodyBytes } from "./method.ts";
import type { PublicPace } from "./public-pace.ts";
import { compileNameCheck } from "./plain-names.ts";
import { addReflection } from "./reflection.ts";
import { presentedBy, readIfMatch, readRevision } from "./request-headers.ts";
import { toConnectError } from "./rpc-error.ts";
import { countingBody, sentBytes } from "./sent-bytes.ts";
import type { StreamPace } from "./stream-pace.ts";

/** The same methods over gRPC, gRPC-Web and Connect, behind the same gate. */
export interface Rpc {
  /** True for a path of a method here, or any request in gRPC's own content type. */
  accepts(exchange: Exchange): boolean;
  /** True for a method whose client may speak for as long as it likes. */
  streams(exchange: Exchange): boolean;
  handle(exchange: Exchange): Promise<void>;
}

const exchangeKey = createContextKey<Exchange | undefined>(undefined, { description: "the HTTP request of a call" });
/** Whom the gate admitted. */
const principalKey = createContextKey<Principal | undefined>(undefined, { description: "the caller of a call" });
const none: ReadonlySet<string> = new Set();

/** Serves all methods, with reflection and health beside them. */
export function createRpc(
  methods: readonly ApiMethod[],
  deps: GatewayDeps,
  { gate, validation, refused, dear, shown }: Entrance,
): Rpc {
  const entryChecks = createEntryChecks();

  const paced = (context: HandlerContext, act: (pace: PublicPace, source: string) => () => void): (() => void) => {
    const { source, requestId } = exchangeOf(context);
    try {
      return deps.publicPace === undefined ? nothing : act(deps.publicPace, source);
    } catch (error) {
      throw toConnectError(HoldfastError.from(error), requestId, deps.baseUrl);
    }
  };
  const pace: StreamPace = {
    take(context) {
      paced(context, (publicPace, source) => {
        publicPace.take(source);
        return nothing;
      });
    },
    stream: (context) => paced(context, (publicPace, source) => publicPace.stream(source)),
  };

  function routes(router: ConnectRouter): void {
    for (const method of methods) {
      const description = method.description as DescMethod & { methodKind: "unary" };
      const requestGate = gateOf(method);
      router.rpc(description, handlerOf(method) as never, { readMaxBytes: method.maxBodyBytes, requestGate });
    }
    addReflection(router, [...new Set(methods.map((method) => method.description.parent))], pace);
    addHealth(router, deps, pace);
  }

  /** A caller without the right is refused before a byte of the message is read. */
  function gateOf(method: ApiMethod) {
    const subject = "orgId" in method.description.input.field ? "unread" : undefined;
    return async (context: HandlerContext): Promise<void> => {
      const exchange = exchangeOf(context);
      try {
        if (method.scope === "public") deps.publicPace?.take(exchange.source);
        const principal = await gate.admit(method, presentedBy(exchange, subject), (name, value) =>
          context.responseHeader.set(name, value),
        );
        context.values.set(principalKey, principal);
      } catch (thrown) {
        throw refusalOf(method, exchange, thrown);
      }
    };
  }

  /** The caller whom the gate admitted, acting in the organization that the message names if it has a choice. */
  async function callerOf(method: ApiMethod, message: Message, context: HandlerContext, exchange: Exchange) {
    const principal = context.values.get(principalKey);
    const { orgId } = message as { orgId?: string };
    if (principal?.mustChoose !== true || orgId === undefined) return principal;
    return gate.judge(method, presentedBy(exchange, orgId));
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
        if (mask !== undefined)
          checkMask(input, (message as Message & Record<string, unknown>)[mask] as FieldMask | undefined, faults);
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
          // Keys belong to POST requests of REST; a gRPC client that retries reads first.
          idempotency: undefined,
          ifMatch,
          minRevision,
          setHeader: (name, value) => context.responseHeader.set(name, value),
        };
        if (method.check !== undefined && !tooLong) faults.add(await method.check(message, call));
        if (faults.list.length > 0) {
          const error = invalidRequest(faults);
          refused(method, { ...exchange, principal, error, input: message });
          throw error;
        }
        await shown(method, call);
        context.responseHeader.set("request-id", exchange.requestId);
        const leave = method.weight > 1 ? dear.take(principal) : undefined;
        try {
          return await method.handle(message, call);
        } finally {
          leave?.();
        }
      } catch (thrown) {
        throw refusalOf(method, exchange, thrown);
      }
    };
  }

  const router = createConnectRouter({
    acceptCompression: [compressionGzip, compressionBrotli],
    // For methods without a limit of their own: reflection and health.
    readMaxBytes: publicBodyBytes,
    maxTimeoutMs: 10 * 60_000,
    // A field that is misspelled is not passed over, in Connect's JSON as little as in REST's.
    jsonOptions: { ignoreUnknownFields: false },
    // No method reads fields that a newer client sends, and keeping them costs more than skipping them.
    binaryOptions: { readUnknownFields: false },
  });
  routes(router);
  const handlers = new Map(router.handlers.map((handler) => [handler.requestPath, handler]));

  async function answer(exchange: Exchange, handler: UniversalHandler): Promise<void> {
    const { request, response } = exchange;
    const values = createContextValues().set(exchangeKey, exchange);
    try {
      const asked = countingBody(universalRequestFromNodeRequest(request, response, undefined, values));
      await universalResponseToNodeResponse(await boundedAnswer(await handler(asked)), response);
    } catch (error) {
      // The client has closed the connection.
      if (ConnectError.from(error).code === Code.Aborted) return;
      deps.log.error("answer failed", { requestId: exchange.requestId, path: exchange.path, error });
      response.destroy();
    }
  }

  return {
    accepts: ({ path, request }) => handlers.has(path) || isGrpc(request.headers["content-type"]),
    streams: ({ path }) => handlers.get(path)?.method.methodKind === "bidi_streaming",
    async handle(exchange) {
      const handler = handlers.get(exchange.path);
      // JSON is for calls without streams, where refusals are answers of their own and not in headers.
      const isJsonStream = exchange.request.headers["content-type"]?.includes("+json") === true;
      if (handler === undefined || isJsonStream) return unimplemented(exchange);
      await answer(exchange, handler);
    },
  };
}

function nothing(): void {
  // There is nothing to give back.
}

function exchangeOf(context: HandlerContext): Exchange {
  const exchange = context.values.get(exchangeKey);
  if (exchange === undefined) throw new Error("a call came without its request");
  return exchange;
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
