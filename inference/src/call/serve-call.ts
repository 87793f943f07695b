import { isAscii } from "node:buffer";
import type { EgressResponse } from "@holdfast/egress/egress-response.ts";
import type { EgressClient } from "@holdfast/egress/egress-client.ts";
import { EgressFailure } from "@holdfast/egress/egress-failure.ts";
import type { AdmittedCall } from "../quota-lease/accounting.ts";
import { type ApiError, apiError, errorBody } from "../http/api-error.ts";
import type { ClientResponse } from "../http/client-response.ts";
import type { Metrics } from "../metrics.ts";
import { callUpstream, failureOf } from "./call-upstream.ts";
import { createChatStream, StreamBroken } from "./chat-stream.ts";
import type { CheckedCall } from "./check-call.ts";
import { isRecord } from "./check-call.ts";
import type { Drains } from "./drains.ts";
import type { Route } from "./route-call.ts";
import { textsOf, upstreamBody } from "./upstream-body.ts";
import { countedUsage, readUsage, reportedUsage } from "./usage.ts";

interface Deps {
  readonly egress: Pick<EgressClient, "request">;
  readonly drains: Drains;
  readonly metrics: Metrics;
}

/** An admitted call with its route. */
export interface RoutedCall {
  readonly call: CheckedCall;
  readonly route: Route;
  readonly admitted: AdmittedCall;
}

/**
 * Calls the provider and forwards its response. However the call ends, it is settled once, by the usage that the
 * provider reported or else by our own count. A disconnected client does not end the call, since the provider still
 * charges for it.
 */
export async function serveCall(routed: RoutedCall, client: ClientResponse, deps: Deps): Promise<void> {
  const { call, route, admitted } = routed;
  const drain = deps.drains.begin(client);
  try {
    const { organizationId } = admitted.reservation;
    const accept = call.stream ? "text/event-stream" : "application/json";
    const its = { egress: deps.egress, organizationId, accept, signal: drain.signal };
    const upstream = await callUpstream(route, upstreamBody(call), its);
    if ("error" in upstream) {
      const reported = readUsage(upstream.usage, admitted.reservation);
      if (reported === undefined) admitted.cancel();
      else admitted.settle(reportedUsage(reported, route.price));
      return client.fail(upstream.error);
    }
    deps.metrics.firstByte(call.provider, client.sinceStartS());
    if (call.stream) await passStream(routed, upstream.response, client);
    else await passComplete(routed, upstream.response, client);
  } finally {
    drain.end();
  }
}

async function passComplete(
  { call, route, admitted }: RoutedCall,
  response: EgressResponse,
  client: ClientResponse,
): Promise<void> {
  const { reservation } = admitted;
  let bytes: Buffer;
  try {
    bytes = await response.bytes();
  } catch (error) {
    // The provider responded with success and may charge for a response that could not be read.
    admitted.settle(await countedUsage(reservation, "", route.price));
    return client.fail(bodyFailure(error));
  }
  const isPlain = isAscii(bytes);
  const text = isPlain ? bytes.toString("latin1") : bytes.toString();
  const body = parsed(text);
  if (body === undefined) {
    admitted.settle(await countedUsage(reservation, text, route.price));
    return client.fail(apiError("upstream_error", "The provider's response is not a JSON object."));
  }
  const reported = readUsage(body["usage"], reservation);
  const used =
    reported === undefined
      ? await countedUsage(reservation, textsOf(body), route.price)
      : reportedUsage(reported, route.price);
  admitted.settle(used);
  client.tokens(call.provider, used);
  if (isPlain) client.json(text, "latin1");
  else client.json(bytes);
}

async function passStream(
  { call, route, admitted }: RoutedCall,
  response: EgressResponse,
  client: ClientResponse,
): Promise<void> {
  const { reservation } = admitted;
  const stream = createChatStream(reservation, `${call.provider}/${call.model}`);
  let failure: ApiError | undefined;
  try {
    for await (const bytes of response.body) {
      const out = stream.push(bytes);
      if (out !== "") await client.event(out);
      if (stream.isDone) break;
    }
    if (!stream.isDone) failure = apiError("upstream_error", "The provider's response is incomplete.");
  } catch (error) {
    failure = error instanceof StreamBroken ? apiError("upstream_error", error.message) : bodyFailure(error);
  }
  const { usage: reported } = stream;
  const used =
    reported === undefined
      ? await countedUsage(reservation, stream.text, route.price)
      : reportedUsage(reported, route.price);
  admitted.settle(used);
  client.tokens(call.provider, used);
  if (failure === undefined) await client.event(stream.ending(used));
  else if (client.hasBegun) await client.event(`data: ${errorBody(failure)}\n\n`);
  else return client.fail(failure);
  client.end();
}

function bodyFailure(error: unknown): ApiError {
  if (error instanceof EgressFailure && error.kind === "too large")
    return apiError("upstream_error", "The provider's response is too large.");
  const failure = failureOf(error);
  return failure.code === "upstream_timeout"
    ? failure
    : apiError("upstream_error", "The provider's response is incomplete.");
}

function parsed(text: string): Record<string, unknown> | undefined {
  try {
    const body: unknown = JSON.parse(text);
    return isRecord(body) ? body : undefined;
  } catch {
    return undefined;
  }
}
