import type { Idempotency, StoredResponse, Principal } from "@holdfast/common/call.ts";
import { HoldfastError } from "@holdfast/common/errors.ts";
import { createLargeBodyLimit, hasBody, readBody } from "./body.ts";
import { createBodyThread } from "./body-thread.ts";
import type { CallGuards } from "./call-guards.ts";
import { createConcurrencyLimit } from "./concurrency-limit.ts";
import { compileEvents, type SendEvents } from "./events.ts";
import { type Exchange, headerOf, problemContextOf, send } from "./exchange.ts";
import type { Presented } from "./gate.ts";
import type { GatewayDeps } from "./gateway-deps.ts";
import { checkKey, createIdempotentCalls, idempotencyOf } from "./idempotency.ts";
import { type BuildInput, compileInput, emptyBody, invalidRequest, type ParsedBody, parseBody } from "./input.ts";
import { type BodyShape, bodyShapeOf } from "./json/body-shape.ts";
import { createDecoders } from "./json/decode.ts";
import { createEncoders } from "./json/encode.ts";
import { createFaults, type Faults } from "./json/faults.ts";
import { inlineValues, maxValues } from "./json/parse-json.ts";
import type { ApiMethod, RestRule } from "./method.ts";
import { problemResponse } from "./problem.ts";
import { presentedBy, readIfMatch, readRevision } from "./request-headers.ts";
import { type BuildResponse, compileResponse } from "./response.ts";
import { RestCall } from "./rest-call.ts";
import { createRoutes, type Match } from "./routes.ts";

interface Target {
  readonly method: ApiMethod;
  readonly rest: RestRule;
  /** Index of the organization in the variables of the path; -1 if there is none. */
  readonly subject: number;
  readonly input: BuildInput;
  /** Shape of bodies, of which large ones are parsed in a worker thread; undefined for methods without raw JSON. */
  readonly shape: BodyShape | undefined;
  readonly response: BuildResponse;
  readonly events: SendEvents | undefined;
}

/** A request that passed the gate, with its parsed body. */
interface AdmittedRequest {
  readonly exchange: Exchange;
  readonly target: Target;
  readonly match: Match<Target>;
  readonly principal: Principal | undefined;
  readonly body: ParsedBody;
  readonly presented: Presented;
}

/** Serves the methods that have an HTTP rule; throws a HoldfastError for a refused request. */
export function createRest(
  methods: readonly ApiMethod[],
  deps: GatewayDeps,
  { gate, validation, reportRefusal, expensiveCalls, waitForRevision }: CallGuards,
): (exchange: Exchange) => Promise<void> {
  const decoders = createDecoders();
  const encoders = createEncoders();
  const largeBodyLimit = createLargeBodyLimit();
  const bodyThread = createBodyThread();
  const idempotent = createIdempotentCalls({ stored: deps.storedResponses, log: deps.log });
  const followers = createConcurrencyLimit(deps.concurrencyLimits?.followers ?? followerLimits, "streams");
  const routes = createRoutes<Target>(
    methods.flatMap((method) => {
      const { rest } = method;
      if (rest === undefined) return [];
      const target: Target = {
        method,
        rest,
        subject: rest.pathFields.findIndex(({ name }) => name === "org_id"),
        input: compileInput(method, rest, decoders, validation),
        shape: bodyShapeOf(rest.bodyFields),
        response: compileResponse(method, rest, encoders(method.description.output)),
        events: rest.events ? compileEvents(method, encoders, deps, followers) : undefined,
      };
      return [{ verb: rest.verb, segments: rest.segments, target }];
    }),
  );

  function targetOf(exchange: Exchange): { target: Target; match: Match<Target> } {
    const match = routes.match(exchange.path);
    if (match === undefined) throw new HoldfastError("NOT_FOUND", "No method has this path.");
    const verb = exchange.request.method === "HEAD" ? "GET" : (exchange.request.method ?? "");
    const target = match.targets.get(verb);
    if (target !== undefined) return { target, match };
    const allow = [...match.targets.keys()].flatMap((each) => (each === "GET" ? ["GET", "HEAD"] : [each]));
    throw new HoldfastError("METHOD_NOT_ALLOWED", `The path supports ${allow.join(", ")}.`, { allow });
  }

  return async (exchange) => {
    const { request } = exchange;
    const { target, match } = targetOf(exchange);
    const { method } = target;
    if (method.scope === "public") deps.publicRateLimit?.take(exchange.source);
    const presented = presentedBy(exchange, target.subject < 0 ? undefined : match.variables[target.subject]);
    const principal = await gate.admit(method, presented, (name, value) => {
      exchange.responseHeaders[name] = value;
    });
    const largeBody = largeBodyLimit.forRequest();
    try {
      const key = target.rest.verb === "POST" ? headerOf(request, "idempotency-key") : undefined;
      const body = hasBody(request)
        ? await bodyOf(exchange, target, { principal, onLarge: largeBody.take, keyed: key !== undefined })
        : emptyBody;
      if (key !== undefined) checkKey(key);
      const admitted = { exchange, target, match, principal, body, presented };
      return await (key === undefined || !method.storesResponse ? once(admitted, undefined) : keyed(admitted, key));
    } finally {
      largeBody.release();
    }
  };

  async function bodyOf(
    exchange: Exchange,
    { method, shape }: Target,
    { principal, onLarge, keyed }: { principal: Principal | undefined; onLarge: () => void; keyed: boolean },
  ): Promise<ParsedBody> {
    try {
      const bytes = await readBody(exchange.request, method.maxBodyBytes, onLarge);
      if (shape !== undefined && bytes.length > inlineBodyBytes) return await bodyThread.parse({ bytes, shape, keyed });
      gate.weigh(method, principal, bytes.length);
      return parseBody(bytes, shape === undefined ? inlineValues : maxValues);
    } catch (thrown) {
      reportRefusal(method, { ...exchange, principal, error: HoldfastError.from(thrown) });
      throw thrown;
    }
  }

  async function once(admitted: AdmittedRequest, idempotency: Idempotency | undefined) {
    const { exchange, target } = admitted;
    const { input, call } = await prepare(admitted, idempotency);
    await waitForRevision(target.method, call);
    if (target.events !== undefined && (input as { follow?: boolean }).follow === true) {
      return target.events(exchange, input, call, () => gate.reauthorize(target.method, admitted.presented));
    }
    const release = target.method.weight > 1 ? expensiveCalls.take(call.principal) : undefined;
    let output: object;
    try {
      output = await target.method.handle(input, call);
    } finally {
      release?.();
    }
    const { status, headers, body: text } = target.response(output);
    send(exchange, status, Object.assign(call.responseHeaders, headers), text);
  }

  async function prepare(admitted: AdmittedRequest, idempotency: Idempotency | undefined) {
    const { exchange, target, match, principal, body } = admitted;
    const faults: Faults = createFaults();
    const input = target.input(match.variables, exchange.query, body, faults);
    const { request } = exchange;
    const ifMatch = readIfMatch(headerOf(request, "if-match"), faults);
    const minRevision = readRevision(headerOf(request, "holdfast-revision"), faults);
    const { ownerKind } = target.method;
    const call = new RestCall(exchange, { principal, idempotency, ifMatch, minRevision, ownerKind });
    if (target.method.check !== undefined) faults.add(await target.method.check(input, call));
    if (faults.list.length > 0) {
      const error = invalidRequest(faults);
      reportRefusal(target.method, { ...exchange, principal, error, input });
      throw error;
    }
    return { input, call };
  }

  /**
   * Serves a request with an Idempotency-Key. Refusals of the handler are stored and replayed too, for callers with a
   * credential.
   */
  async function keyed(admitted: AdmittedRequest, key: string) {
    const { exchange, target, principal, body } = admitted;
    let isStored = false;
    let call: RestCall | undefined;
    const encode = (output: object): StoredResponse => {
      isStored = true;
      return target.response(output);
    };
    const { verb } = target.rest;
    const idempotency = idempotencyOf({
      key,
      principal,
      verb,
      path: exchange.path,
      query: exchange.query,
      body,
      encode,
    });
    if (target.method.handlesIdempotency) return once(admitted, idempotency);
    const signal = AbortSignal.timeout(storageTimeoutMs);
    // A request without a credential is validated before the store is read.
    const early = principal === undefined ? await prepare(admitted, idempotency) : undefined;
    const { response, replayed } = await idempotent.run(idempotency, signal, async () => {
      const prepared = early ?? (await prepare(admitted, idempotency));
      call = prepared.call;
      const reached = principal !== undefined;
      try {
        const output = await target.method.handle(prepared.input, call);
        return { response: target.response(output), isStored, reached };
      } catch (error) {
        return { response: refusal(exchange, error), isStored: false, reached };
      }
    });
    const headers = replayed ? { "idempotency-replayed": "true" } : (call?.responseHeaders ?? {});
    send(exchange, response.status, { ...response.headers, ...headers }, response.body);
  }

  /**
   * The response for an error of the handler. Rethrows internal errors, which are logged by the dispatcher and not
   * stored.
   */
  function refusal(exchange: Exchange, thrown: unknown): StoredResponse {
    const error = HoldfastError.from(thrown);
    if (error.entry.status >= 500 || error.entry.status === 401) throw thrown;
    const { status, headers, body } = problemResponse(error, problemContextOf(exchange, deps.baseUrl));
    return { status, headers: headers as Readonly<Record<string, string>>, body, secret: false };
  }
}

/** Limits of concurrent followed lists; a user, a dashboard or a program follows one or two. */
const followerLimits = { credential: 20, organization: 100, all: 1_000 };

/** Size in bytes above which a body with raw JSON values is parsed in a worker thread. */
const inlineBodyBytes = 64 << 10;

/** Timeout of reads and writes of stored responses. */
const storageTimeoutMs = 60_000;
