import { hash, randomUUID, timingSafeEqual } from "node:crypto";
import { costOf, hasEuRoute, providerNamed } from "@holdfast/common/inference/catalog.ts";
import { rpmAccount } from "@holdfast/common/inference/accounts.ts";
import type { Log } from "@holdfast/common/log.ts";
import type { HttpRequest, HttpResponse } from "@holdfast/https/request-handler.ts";
import { type CallKind, checkCall } from "../call/check-call.ts";
import { estimateCall } from "../call/estimate.ts";
import { routeCall } from "../call/route-call.ts";
import type { RoutedCall } from "../call/serve-call.ts";
import type { Configuration, KeySettings, Organization } from "../configuration/configuration.ts";
import type { Accounting } from "../hold/accounting.ts";
import type { HoldBook } from "../hold/hold-book.ts";
import type { Metrics } from "../metrics.ts";
import { type ApiError, apiError } from "./api-error.ts";
import { type ClientAnswer, createClientAnswer } from "./client-answer.ts";
import { bodyMax, type BodyRoom, readBody } from "./read-body.ts";

interface HandlerDeps {
  readonly configuration: Configuration;
  readonly accounting: Accounting;
  readonly book: Pick<HoldBook, "rate">;
  readonly room: BodyRoom;
  readonly metrics: Metrics;
  readonly serve: (routed: RoutedCall, client: ClientAnswer) => Promise<void>;
  /** False when it was without controllers for too long: nothing is admitted any more. */
  readonly mayAdmit: () => boolean;
  readonly now: () => number;
  readonly log: Log;
}

const paths: Readonly<Record<string, { readonly method: string; readonly kind: CallKind | "models" | "healthz" }>> = {
  "/v1/chat/completions": { method: "POST", kind: "chat" },
  "/v1/embeddings": { method: "POST", kind: "embeddings" },
  "/v1/models": { method: "GET", kind: "models" },
  "/healthz": { method: "GET", kind: "healthz" },
};
const inFlightMax = 100;
const noRetry = { "x-should-retry": "false" };

/** Answers calls as OpenAI's API does. What it refuses, it refuses in the order of the table in docs/inference.md. */
export function createHandler(deps: HandlerDeps): (request: HttpRequest, response: HttpResponse) => void {
  const { configuration, accounting, book, metrics, now, log } = deps;
  const inFlight = new Map<string, number>();

  async function answer(request: HttpRequest, client: ClientAnswer): Promise<void> {
    const path = (request.url ?? "").split("?", 1)[0] ?? "";
    const route = Object.hasOwn(paths, path) ? paths[path] : undefined;
    if (route === undefined) return client.fail(apiError("not_found", `There is nothing at ${path.slice(0, 200)}.`));
    if (request.method !== route.method)
      return client.fail(apiError("method_not_allowed", `Use ${route.method}.`, { headers: { allow: route.method } }));
    if (route.kind === "healthz") return client.json('{"status":"ok"}');
    const key = keyOf(request);
    if (key === undefined)
      return client.fail(apiError("invalid_key", "The inference key is missing, or is not valid."));
    if (route.kind === "models") return client.json(modelsOf(configuration.organization(key.organizationId)));
    const mine = inFlight.get(key.id) ?? 0;
    if (mine >= inFlightMax) {
      tellRate(key, client);
      return client.fail(limited(`The key has ${inFlightMax} requests under way.`, 1_000));
    }
    inFlight.set(key.id, mine + 1);
    try {
      await call(route.kind, key, request, client);
    } finally {
      const left = (inFlight.get(key.id) ?? 1) - 1;
      if (left === 0) inFlight.delete(key.id);
      else inFlight.set(key.id, left);
    }
  }

  async function call(kind: CallKind, key: KeySettings, request: HttpRequest, client: ClientAnswer): Promise<void> {
    if (!deps.mayAdmit()) return client.fail(unavailable);
    const counted = await accounting.countRequest(key);
    tellRate(key, client);
    if (counted.kind === "unavailable") return client.fail(unavailable);
    if (counted.kind === "refused")
      return client.fail(limited(`The key may send ${key.rateLimitRpm} requests in 60 s.`, counted.retryInMs));
    const read = await readBody(request, key.organizationId, deps.room);
    if (read.kind === "too large")
      return client.fail(apiError("request_too_large", `A body has at most ${bodyMax} bytes.`));
    if (read.kind === "no room") return client.fail(limited("Too many large requests are under way.", 1_000));
    if (read.kind === "no text") return client.fail(apiError("invalid_model", "The body is not UTF-8."));
    if (read.kind !== "body") return;
    try {
      await judged(kind, key, read.text, client);
    } finally {
      deps.room.give(key.organizationId, read.bytes);
    }
  }

  async function judged(kind: CallKind, key: KeySettings, text: string, client: ClientAnswer): Promise<void> {
    const checked = checkCall(kind, text);
    if (isError(checked)) return client.fail(checked);
    const organization = configuration.organization(key.organizationId);
    const route = routeCall(checked, organization, configuration.catalog);
    if (isError(route)) return client.fail(route);
    if (organization === undefined) return client.fail(unavailable);
    client.provider = checked.provider;
    const { organizationId, id: keyId } = key;
    const { provider, model } = checked;
    const tokens = estimateCall(checked, route.price.maxOutputTokens);
    const wanted = { organizationId, keyId, provider, model, ...tokens, costMicrocents: costOf(route.price, tokens) };
    const admission = await accounting.admit(key, organization, wanted);
    if (admission.kind === "unavailable") return client.fail(unavailable);
    if (admission.kind === "refused") return client.fail(overLimit(admission));
    try {
      await deps.serve({ call: checked, route, admitted: admission.call }, client);
    } finally {
      // What broke before it was settled never went out.
      admission.call.free();
    }
  }

  function keyOf({ headers: { authorization = "" } }: HttpRequest): KeySettings | undefined {
    const match = /^Bearer (inf_([0-9a-f-]{36})_[A-Za-z0-9_-]{32})$/i.exec(authorization);
    const [, secret = "", id = ""] = match ?? [];
    const key = configuration.key(id);
    const digest = hash("sha256", secret, "buffer");
    if (key === undefined || key.secretHash.length !== digest.length || !timingSafeEqual(key.secretHash, digest))
      return undefined;
    return key.suspended || (key.expiresAtMs !== 0 && key.expiresAtMs <= now()) ? undefined : key;
  }

  function tellRate(key: KeySettings, client: ClientAnswer): void {
    if (key.rateLimitRpm === undefined) return;
    const { left, retryInMs } = book.rate(rpmAccount(key.id));
    client.header("x-ratelimit-limit-requests", String(key.rateLimitRpm));
    client.header("x-ratelimit-remaining-requests", String(Math.min(left, key.rateLimitRpm)));
    client.header("x-ratelimit-reset-requests", `${Math.ceil(retryInMs / 1_000)}s`);
  }

  function modelsOf(organization: Organization | undefined): string {
    const data = [...(organization?.providers ?? [])].flatMap(([name, its]) => {
      const known = providerNamed(configuration.catalog, name);
      if (known === undefined || !its.enabled) return [];
      const eu = hasEuRoute(known, its);
      if (organization?.euOnly === true && !eu) return [];
      return known.models.map((model) => ({
        id: `${name}/${model.name}`,
        object: "model",
        created: 0,
        owned_by: name,
        eu,
      }));
    });
    return JSON.stringify({ object: "list", data });
  }

  return (request, response) => {
    const client = createClientAnswer(response, randomUUID(), metrics);
    answer(request, client).catch((error: unknown) => {
      log.error("call failed", { error });
      if (client.hasBegun) response.destroy();
      else client.fail(apiError("internal_error", "The call could not be finished."));
    });
  };
}

const unavailable = apiError("accounting_unavailable", "The call cannot be accounted for now; try again.", {
  headers: { "retry-after": "1" },
});

function limited(message: string, retryInMs: number): ApiError {
  const seconds = String(Math.max(1, Math.ceil(retryInMs / 1_000)));
  return apiError("rate_limited", message, { headers: { "retry-after": seconds } });
}

function overLimit({
  what,
  left,
  asked,
}: {
  readonly what: "tokens" | "cost";
  readonly left: number;
  readonly asked: number;
}): ApiError {
  if (what === "tokens")
    return apiError(
      "token_ceiling_exceeded",
      `The key has ${left} tokens left this month, and the call may use ${asked}.`,
      { headers: noRetry },
    );
  const cents = (microcents: number) => (microcents / 1_000_000).toFixed(4);
  return apiError(
    "cost_circuit_open",
    `The organization has ${cents(left)} cents left this month, and the call may cost ${cents(asked)}.`,
    { headers: noRetry },
  );
}

function isError<T extends object>(value: T | ApiError): value is ApiError {
  return "status" in value && "code" in value && "message" in value;
}
