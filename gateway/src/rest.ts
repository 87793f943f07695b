import type { Idempotency, KeptAnswer, Principal } from "@holdfast/common/call.ts";
import { HoldfastError } from "@holdfast/common/errors.ts";
import { type BuildAnswer, compileAnswer } from "./answer.ts";
import { hasBody, readBody } from "./body.ts";
import type { Entrance } from "./entrance.ts";
import { compileEvents, type SendEvents } from "./events.ts";
import { type Exchange, headerOf, send } from "./exchange.ts";
import type { GatewayDeps } from "./gateway-deps.ts";
import { createIdempotentCalls, idempotencyOf } from "./idempotency.ts";
import { type BuildInput, compileInput, emptyBody, invalidRequest, type ParsedBody, parseBody } from "./input.ts";
import { createDecoders } from "./json/decode.ts";
import { createEncoders } from "./json/encode.ts";
import { createFaults, type Faults } from "./json/faults.ts";
import type { ApiMethod, RestRule } from "./method.ts";
import { problemAnswer } from "./problem.ts";
import { presentedBy, readIfMatch, readRevision, revisionWaitMs } from "./request-headers.ts";
import { RestCall } from "./rest-call.ts";
import { createRoutes, type Match } from "./routes.ts";

interface Target {
  readonly method: ApiMethod;
  readonly rest: RestRule;
  /** Place of the organization among the variables of the path; -1 for none. */
  readonly subject: number;
  readonly input: BuildInput;
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
}

/** Serves the methods that have an HTTP rule. Throws the HoldfastError of a request that is refused. */
export function createRest(
  methods: readonly ApiMethod[],
  deps: GatewayDeps,
  { gate, validation, refused }: Entrance,
): (exchange: Exchange) => Promise<void> {
  const decoders = createDecoders();
  const encoders = createEncoders();
  const idempotent = createIdempotentCalls({ kept: deps.keptAnswers, log: deps.log });
  const routes = createRoutes<Target>(
    methods.flatMap((method) => {
      const { rest } = method;
      if (rest === undefined) return [];
      const target: Target = {
        method,
        rest,
        subject: rest.pathFields.findIndex(({ name }) => name === "org_id"),
        input: compileInput(method, rest, decoders, validation),
        answer: compileAnswer(method, rest, encoders(method.description.output)),
        events: rest.events ? compileEvents(method, encoders, deps) : undefined,
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
    const presented = presentedBy(exchange, target.subject < 0 ? undefined : match.variables[target.subject]);
    const principal = await gate.admit(method, presented, (name, value) => {
      exchange.answerHeaders[name] = value;
    });
    const body = hasBody(request) ? await bodyOf(exchange, method, principal) : emptyBody;
    const key = target.rest.verb === "POST" ? headerOf(request, "idempotency-key") : undefined;
    const asked = { exchange, target, match, principal, body };
    return key === undefined ? once(asked) : keyed(asked, key);
  };

  async function bodyOf(exchange: Exchange, method: ApiMethod, principal: Principal | undefined): Promise<ParsedBody> {
    try {
      return parseBody(await readBody(exchange.request, method.maxBodyBytes));
    } catch (thrown) {
      refused(method, { ...exchange, principal, error: HoldfastError.from(thrown) });
      throw thrown;
    }
  }

  async function once(asked: Asked) {
    const { exchange, target } = asked;
    const { input, call } = prepare(asked, undefined);
    if (call.minRevision !== undefined && target.method.readOnly) await deps.reached(call.minRevision, revisionWaitMs);
    if (target.events !== undefined && (input as { follow?: boolean }).follow === true) {
      return target.events(exchange, input, call);
    }
    const output = await target.method.handle(input, call);
    const { status, headers, body: text } = target.answer(output);
    send(exchange, status, Object.assign(call.answerHeaders, headers), text);
  }

  function prepare(asked: Asked, idempotency: Idempotency | undefined) {
    const { exchange, target, match, principal, body } = asked;
    const faults: Faults = createFaults();
    const input = target.input(match.variables, exchange.query, body, faults);
    const { request } = exchange;
    const ifMatch = readIfMatch(headerOf(request, "if-match"), faults);
    const minRevision = readRevision(headerOf(request, "holdfast-revision"), faults);
    const call = new RestCall(exchange, { principal, idempotency, ifMatch, minRevision });
    if (target.method.check !== undefined) faults.add(target.method.check(input, call));
    if (faults.list.length > 0) {
      const error = invalidRequest(faults);
      refused(target.method, { ...exchange, principal, error, input });
      throw error;
    }
    return { input, call };
  }

  /** A POST with an Idempotency-Key: refusals are answers too, and kept like them. */
  async function keyed(asked: Asked, key: string) {
    const { exchange, target, principal, body } = asked;
    let isKept = false;
    let call: RestCall | undefined;
    const encode = (output: object): KeptAnswer => {
      isKept = true;
      return target.answer(output);
    };
    const { verb } = target.rest;
    const idempotency = idempotencyOf({ key, principal, verb, path: exchange.path, body: body.value, encode });
    const signal = AbortSignal.timeout(keptTimeoutMs);
    const { answer, replayed } = await idempotent.run(idempotency, signal, async () => {
      try {
        const prepared = prepare(asked, idempotency);
        call = prepared.call;
        const output = await target.method.handle(prepared.input, call);
        return { answer: target.answer(output), isKept };
      } catch (error) {
        return { answer: refusal(exchange, error), isKept: false };
      }
    });
    const headers = replayed ? { "idempotency-replayed": "true" } : (call?.answerHeaders ?? {});
    send(exchange, answer.status, { ...answer.headers, ...headers }, answer.body);
  }

  /** The refusal as it is sent; what nobody foresaw goes up, is logged there and is not kept. */
  function refusal(exchange: Exchange, thrown: unknown): KeptAnswer {
    const error = HoldfastError.from(thrown);
    if (error.entry.status >= 500 || error.entry.status === 401) throw thrown;
    const { status, headers, body } = problemAnswer(error, exchange.requestId, deps.baseUrl);
    return { status, headers: headers as Readonly<Record<string, string>>, body, secret: false };
  }
}

/** How long looking up or keeping an answer may take. */
const keptTimeoutMs = 60_000;
