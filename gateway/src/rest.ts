import type { Idempotency, KeptAnswer, Principal } from "@holdfast/common/call.ts";
import { HoldfastError } from "@holdfast/common/errors.ts";
import { type BuildAnswer, compileAnswer } from "./answer.ts";
import { hasBody, readBody } from "./body.ts";
import { createBodyThread } from "./body-thread.ts";
import type { Entrance } from "./entrance.ts";
import { compileEvents, type SendEvents } from "./events.ts";
import { type Exchange, headerOf, send } from "./exchange.ts";
import type { Presented } from "./gate.ts";
import type { GatewayDeps } from "./gateway-deps.ts";
import { checkKey, createIdempotentCalls, idempotencyOf } from "./idempotency.ts";
import { type BuildInput, compileInput, emptyBody, invalidRequest, type ParsedBody, parseBody } from "./input.ts";
import { type BodyShape, bodyShapeOf } from "./json/body-shape.ts";
import { createDecoders } from "./json/decode.ts";
import { createEncoders } from "./json/encode.ts";
import { createFaults, type Faults } from "./json/faults.ts";
import { inlineValues, maxValues } from "./json/parse-json.ts";
import { createLargeBodies } from "./large-bodies.ts";
import type { ApiMethod, RestRule } from "./method.ts";
import { createPlaces } from "./places.ts";
import { problemAnswer } from "./problem.ts";
import { presentedBy, readIfMatch, readRevision } from "./request-headers.ts";
import { RestCall } from "./rest-call.ts";
import { createRoutes, type Match } from "./routes.ts";

interface Target {
  readonly method: ApiMethod;
  readonly rest: RestRule;
  /** Place of the organization among the variables of the path; -1 for none. */
  readonly subject: number;
  readonly input: BuildInput;
  /** Of a body that may be read in a thread of its own. */
  readonly shape: BodyShape | undefined;
  readonly answer: BuildAnswer;
  readonly events: SendEvents | undefined;
}

/** A request whose caller and body are known. */
interface Asked {
  readonly exchange: Exchange;
  readonly target: Target;
  readonly match: Match<Target>;
  readonly principal: Principal | undefined;
  readonly body: ParsedBody;
  readonly presented: Presented;
}

/** Serves the methods that have an HTTP rule. Throws the HoldfastError of a request that is refused. */
export function createRest(
  methods: readonly ApiMethod[],
  deps: GatewayDeps,
  { gate, validation, refused, dear, shown }: Entrance,
): (exchange: Exchange) => Promise<void> {
  const decoders = createDecoders();
  const encoders = createEncoders();
  const largeBodies = createLargeBodies();
  const bodyThread = createBodyThread();
  const idempotent = createIdempotentCalls({ kept: deps.keptAnswers, log: deps.log });
  const followers = createPlaces(deps.places?.followers ?? followerLimits, "streams");
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
        answer: compileAnswer(method, rest, encoders(method.description.output)),
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
    const allow = [...match.targets.keys()].flatMap((known) => (known === "GET" ? ["GET", "HEAD"] : [known]));
    throw new HoldfastError("METHOD_NOT_ALLOWED", `The path takes ${allow.join(", ")}.`, { allow });
  }

  return async (exchange) => {
    const { request } = exchange;
    const { target, match } = targetOf(exchange);
    const { method } = target;
    if (method.scope === "public") deps.publicPace?.take(exchange.source);
    const presented = presentedBy(exchange, target.subject < 0 ? undefined : match.variables[target.subject]);
    const principal = await gate.admit(method, presented, (name, value) => {
      exchange.answerHeaders[name] = value;
    });
    const place = largeBodies.place();
    try {
      const key = target.rest.verb === "POST" ? headerOf(request, "idempotency-key") : undefined;
      const body = hasBody(request)
        ? await bodyOf(exchange, target, { principal, onLarge: place.take, keyed: key !== undefined })
        : emptyBody;
      if (key !== undefined) checkKey(key);
      const asked = { exchange, target, match, principal, body, presented };
      return await (key === undefined || !method.keepsAnswer ? once(asked, undefined) : keyed(asked, key));
    } finally {
      place.free();
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
      refused(method, { ...exchange, principal, error: HoldfastError.from(thrown) });
      throw thrown;
    }
  }

  async function once(asked: Asked, idempotency: Idempotency | undefined) {
    const { exchange, target } = asked;
    const { input, call } = await prepare(asked, idempotency);
    await shown(target.method, call);
    if (target.events !== undefined && (input as { follow?: boolean }).follow === true) {
      return target.events(exchange, input, call, () => gate.judge(target.method, asked.presented));
    }
    const leave = target.method.weight > 1 ? dear.take(call.principal) : undefined;
    let output: object;
    try {
      output = await target.method.handle(input, call);
    } finally {
      leave?.();
    }
    const { status, headers, body: text } = target.answer(output);
    send(exchange, status, Object.assign(call.answerHeaders, headers), text);
  }

  async function prepare(asked: Asked, idempotency: Idempotency | undefined) {
    const { exchange, target, match, principal, body } = asked;
    const faults: Faults = createFaults();
    const input = target.input(match.variables, exchange.query, body, faults);
    const { request } = exchange;
    const ifMatch = readIfMatch(headerOf(request, "if-match"), faults);
    const minRevision = readRevision(headerOf(request, "holdfast-revision"), faults);
    const call = new RestCall(exchange, { principal, idempotency, ifMatch, minRevision });
    if (target.method.check !== undefined) faults.add(await target.method.check(input, call));
    if (faults.list.length > 0) {
      const error = invalidRequest(faults);
      refused(target.method, { ...exchange, principal, error, input });
      throw error;
    }
    return { input, call };
  }

  /**
   * A change with an Idempotency-Key: a caller with a credential gets the same refusal of the handler again, like an
   * answer.
   */
  async function keyed(asked: Asked, key: string) {
    const { exchange, target, principal, body } = asked;
    let isKept = false;
    let call: RestCall | undefined;
    const encode = (output: object): KeptAnswer => {
      isKept = true;
      return target.answer(output);
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
    if (target.method.ownAnswers) return once(asked, idempotency);
    const signal = AbortSignal.timeout(keptTimeoutMs);
    // A request without a credential is validated before anything is looked up in the store.
    const early = principal === undefined ? await prepare(asked, idempotency) : undefined;
    const { answer, replayed } = await idempotent.run(idempotency, signal, async () => {
      const prepared = early ?? (await prepare(asked, idempotency));
      call = prepared.call;
      const reached = principal !== undefined;
      try {
        const output = await target.method.handle(prepared.input, call);
        return { answer: target.answer(output), isKept, reached };
      } catch (error) {
        return { answer: refusal(exchange, error), isKept: false, reached };
      }
    });
    const headers = replayed ? { "idempotency-replayed": "true" } : (call?.answerHeaders ?? {});
    send(exchange, answer.status, { ...answer.headers, ...headers }, answer.body);
  }

  /** The refusal as it is sent; an unexpected error is rethrown, logged there and not kept. */
  function refusal(exchange: Exchange, thrown: unknown): KeptAnswer {
    const error = HoldfastError.from(thrown);
    if (error.entry.status >= 500 || error.entry.status === 401) throw thrown;
    const { status, headers, body } = problemAnswer(error, exchange.requestId, deps.baseUrl);
    return { status, headers: headers as Readonly<Record<string, string>>, body, secret: false };
  }
}

/** Streams at a time: a person, a dashboard and a program follow one or two each. */
const followerLimits = { credential: 20, organization: 100, all: 1_000 };

/** Bodies with raw values, of which there may be any number, are read where they came up to this size. */
const inlineBodyBytes = 64 << 10;

/** How long looking up or keeping an answer may take. */
const keptTimeoutMs = 60_000;
