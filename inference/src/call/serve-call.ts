import { isAscii } from "node:buffer";
import type { EgressResponse } from "@holdfast/egress/egress-response.ts";
import type { EgressClient } from "@holdfast/egress/egress-client.ts";
import { EgressFailure } from "@holdfast/egress/egress-failure.ts";
import type { Log } from "@holdfast/common/log.ts";
import type { AdmittedCall } from "../quota-lease/accounting.ts";
import { type ApiError, apiError, errorBody } from "../http/api-error.ts";
import type { ClientResponse } from "../http/client-response.ts";
import type { Used } from "../journal/journal-state.ts";
import type { Metrics } from "../metrics.ts";
import { callUpstream, errorInStream, failureOf, notACompletion } from "./call-upstream.ts";
import { type ChatStream, createChatStream, type StreamBroken } from "./chat-stream.ts";
import type { CheckedCall } from "./check-call.ts";
import { isRecord } from "./check-call.ts";
import type { AbandonedCalls } from "./abandoned-calls.ts";
import { withoutByteOrderMark } from "./provider-error.ts";
import type { Route } from "./route-call.ts";
import { textsOf, upstreamBody, usageIn } from "./upstream-body.ts";
import { readUsage, usageOf } from "./usage.ts";

interface Deps {
  readonly egress: Pick<EgressClient, "request">;
  readonly abandonedCalls: AbandonedCalls;
  readonly metrics: Metrics;
  readonly log: Log;
}

/** An admitted call with its route. */
export interface RoutedCall {
  readonly call: CheckedCall;
  readonly route: Route;
  readonly admitted: AdmittedCall;
}

/**
 * Calls the provider and forwards its response. Every call is settled once: by the usage that the provider reported;
 * else, if there was output, by the proxy's own count; else it costs nothing. A disconnected client does not end the
 * call, since the provider still charges for it.
 */
export async function serveCall(routed: RoutedCall, client: ClientResponse, deps: Deps): Promise<void> {
  const { call, route, admitted } = routed;
  const abandoned = deps.abandonedCalls.begin(client);
  try {
    const { organizationId } = admitted.reservation;
    const accept = call.stream ? "text/event-stream" : "application/json";
    const finished = new AbortController();
    const signal = AbortSignal.any([abandoned.signal, finished.signal]);
    const options = { egress: deps.egress, organizationId, accept, signal };
    const upstream = await callUpstream(route, upstreamBody(call), options);
    if ("error" in upstream) {
      await settle(routed, { usage: upstream.usage, text: "", hasOutput: false }, deps);
      return client.fail(upstream.error);
    }
    deps.metrics.firstByte(call.provider, client.sinceStartS());
    const stop = () => finished.abort(new Error("the response is complete"));
    const read = { response: upstream.response, isAbandoned: () => abandoned.signal.aborted, stop };
    if (call.stream) await passStream(routed, read, client, deps);
    else await passComplete(routed, read, client, deps);
  } finally {
    abandoned.end();
  }
}

/** Output and usage that the provider sent. */
interface Output {
  /** The reported usage object, of any shape. */
  readonly usage: unknown;
  readonly text: string;
  readonly hasOutput: boolean;
}

/** Settles the call. Resolves to the charged usage; undefined if the call costs nothing. */
async function settle(
  { call, route, admitted }: RoutedCall,
  { usage, text, hasOutput }: Output,
  { metrics, log }: Deps,
): Promise<Used | undefined> {
  const { kind, provider, model } = call;
  const reported = readUsage(kind, usage);
  if (reported === undefined && !hasOutput) {
    admitted.cancel();
    return undefined;
  }
  const { reservation } = admitted;
  const used = await usageOf(reported, { kind, reserved: reservation, price: route.price, text });
  admitted.settle(used);
  metrics.tokens(provider, used);
  if (used.aboveReservation === true) {
    metrics.aboveReservation(provider);
    const { promptTokens, completionTokens } = used;
    const reserved = { promptTokens: reservation.promptTokens, completionTokens: reservation.completionTokens };
    const { organizationId } = reservation;
    log.warn("usage above reservation", { organizationId, provider, model, promptTokens, completionTokens, reserved });
  }
  return used;
}

/** A response of the provider. */
interface ReadResponse {
  readonly response: EgressResponse;
  /** True once the rest of the response is not read, because the client disconnected. */
  readonly isAbandoned: () => boolean;
  /** Ends the request. */
  readonly stop: () => void;
}

const byteOrderMark = Buffer.from("\ufeff");
/** Duration that a finished stream with its usage may stay open, until the end mark. */
const finishedMs = 2_000;

async function passComplete(
  routed: RoutedCall,
  { response, isAbandoned }: ReadResponse,
  client: ClientResponse,
  deps: Deps,
): Promise<void> {
  let bytes: Buffer;
  try {
    bytes = await response.bytes();
  } catch (error) {
    // The provider charges for a response that is too large or abandoned.
    const hasOutput = isAbandoned() || isTooLarge(error);
    await settle(routed, { usage: undefined, text: "", hasOutput }, deps);
    return client.fail(bodyFailure(error));
  }
  const isPlain = isAscii(bytes);
  const text = isPlain ? bytes.toString("latin1") : withoutByteOrderMark(bytes.toString());
  const body = parsed(text);
  const outputs = body?.[routed.call.kind === "chat" ? "choices" : "data"];
  const hasOutput = Array.isArray(outputs) && outputs.length > 0;
  await settle(routed, { usage: usageIn(body), text: textsOf(body), hasOutput }, deps);
  if (!hasOutput) return client.fail(notACompletion(text, routed.route));
  if (isPlain) client.json(text, "latin1");
  else client.json(bytes.subarray(bytes.indexOf(byteOrderMark) === 0 ? byteOrderMark.length : 0));
}

async function passStream(
  routed: RoutedCall,
  { response, isAbandoned, stop }: ReadResponse,
  client: ClientResponse,
  deps: Deps,
): Promise<void> {
  const { call, route } = routed;
  const stream = createChatStream({ model: `${call.provider}/${call.model}`, count: call.count });
  let failure: ApiError | undefined;
  let closing: NodeJS.Timeout | undefined;
  try {
    for await (const bytes of response.body) {
      const out = stream.push(bytes);
      if (out !== "") await client.event(out);
      if (stream.isDone || stream.broken !== undefined) break;
      if (stream.isFinished && stream.usage !== undefined) closing ??= setTimeout(stop, finishedMs);
    }
    if (stream.broken !== undefined) failure = brokenStream(stream.broken, route);
    else if (!stream.isFinished) failure = incomplete(stream, route);
  } catch (error) {
    // A finished response may stay open, or be reset, in place of the end mark.
    if (!stream.isFinished) failure = bodyFailure(error);
  } finally {
    clearTimeout(closing);
  }
  // A finished response is output, even an empty one.
  const hasOutput = stream.hasOutput || failure === undefined || isAbandoned();
  const used = await settle(routed, { usage: stream.usage, text: stream.text, hasOutput }, deps);
  if (failure === undefined && used !== undefined) await client.event(stream.ending(used));
  else if (client.isStarted) await client.event(`data: ${errorBody(failure ?? incompleteResponse)}\n\n`);
  else return client.fail(failure ?? incompleteResponse);
  client.end();
}

const incompleteResponse = apiError("upstream_error", "The provider's response is incomplete.");

/** The error of a stream that ended too early. */
function incomplete({ otherText }: ChatStream, route: Route): ApiError {
  return otherText.trim() === "" ? incompleteResponse : notACompletion(otherText, route);
}

function brokenStream({ message, event }: StreamBroken, route: Route): ApiError {
  return event === undefined ? apiError("upstream_error", message) : errorInStream(event, route);
}

function isTooLarge(error: unknown): boolean {
  return error instanceof EgressFailure && error.kind === "too large";
}

function bodyFailure(error: unknown): ApiError {
  if (isTooLarge(error)) return apiError("upstream_error", "The provider's response is too large.");
  const failure = failureOf(error);
  return failure.code === "upstream_timeout" ? failure : incompleteResponse;
}

function parsed(text: string): Record<string, unknown> | undefined {
  try {
    const body: unknown = JSON.parse(text);
    return isRecord(body) ? body : undefined;
  } catch {
    return undefined;
  }
}
