import { hash, randomUUID, timingSafeEqual } from "node:crypto";
import { createKeyedCounter } from "@holdfast/common/concurrency/keyed-counter.ts";
import { costOf, hasEuRoute, providerNamed } from "@holdfast/common/inference/catalog.ts";
import { rpmAccount } from "@holdfast/common/inference/accounts.ts";
import type { Log } from "@holdfast/common/log.ts";
import type { HttpRequest, HttpResponse } from "@holdfast/https/request-handler.ts";
import { type CallKind, checkCall, estimateCall } from "../call/check-call.ts";
import { routeCall } from "../call/route-call.ts";
import type { RoutedCall } from "../call/serve-call.ts";
import type { Configuration, KeySettings, Organization } from "../configuration/configuration.ts";
import type { Accounting } from "../quota-lease/accounting.ts";
import type { QuotaLeases } from "../quota-lease/quota-leases.ts";
import type { Metrics } from "../metrics.ts";
import { type ApiError, apiError } from "./api-error.ts";
import { type ClientResponse, createClientResponse } from "./client-response.ts";
import { maxBodyBytes, type BodyBudget, readBody } from "./read-body.ts";

interface HandlerDeps {
  readonly configuration: Configuration;
  readonly accounting: Accounting;
  readonly quotaLeases: Pick<QuotaLeases, "rate">;
  readonly bodyBudget: BodyBudget;
  readonly metrics: Metrics;
  readonly serve: (routed: RoutedCall, client: ClientResponse) => Promise<void>;
  /** False if no controller was connected for `maxDisconnectedS`: then no call is admitted. */
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
const maxInFlight = 100;
const noRetry = { "x-should-retry": "false" };

/** Serves calls in the format of OpenAI's API. docs/how-to/inference.md has the order in which calls are checked. */
export function createHandler(deps: HandlerDeps): (request: HttpRequest, response: HttpResponse) => void {
  const { configuration, accounting, quotaLeases, metrics, now, log } = deps;
  const inFlight = createKeyedCounter();

  async function respond(request: HttpRequest, client: ClientResponse): Promise<void> {
    const path = (request.url ?? "").split("?", 1)[0] ?? "";
    const route = Object.hasOwn(paths, path) ? paths[path] : undefined;
    if (route === undefined)
      return client.fail(apiError("not_found", `The path ${path.slice(0, 200)} does not exist.`));
    if (request.method !== route.method)
      return client.fail(apiError("method_not_allowed", `Use ${route.method}.`, { headers: { allow: route.method } }));
    if (route.kind === "healthz") return client.json('{"status":"ok"}');
    const key = keyOf(request);
    if (key === undefined) return client.fail(apiError("invalid_key", "The inference key is missing or invalid."));
    if (route.kind === "models") return client.json(modelsOf(configuration.organization(key.organizationId)));
    const slot = inFlight.take([{ key: key.id, max: maxInFlight }]);
    if (slot.exceeded !== undefined) {
      setRateHeaders(key, client);
      return client.fail(rateLimited(`The key has ${maxInFlight} requests in flight.`, 1_000));
    }
    try {
      await call(route.kind, key, request, client);
    } finally {
      slot.release();
    }
  }

  async function call(kind: CallKind, key: KeySettings, request: HttpRequest, client: ClientResponse): Promise<void> {
    if (!deps.mayAdmit()) return client.fail(unavailable);
    const counted = await accounting.countRequest(key);
    setRateHeaders(key, client);
    if (counted.kind === "unavailable") return client.fail(unavailable);
    if (counted.kind === "refused")
      return client.fail(rateLimited(`The key may send ${key.rateLimitRpm} requests in 60 s.`, counted.retryInMs));
    const coding = request.headers["content-encoding"] ?? "identity";
    if (coding !== "identity") {
      const message = `The body has the Content-Encoding ${coding.slice(0, 64)}; send it uncompressed.`;
      return client.fail(apiError("unsupported_encoding", message));
    }
    const read = await readBody(request, key.organizationId, deps.bodyBudget);
    if (read.kind === "too large")
      return client.fail(apiError("request_too_large", `A body has at most ${maxBodyBytes} bytes.`));
    if (read.kind === "over budget") return client.fail(rateLimited("Too many large requests are in flight.", 1_000));
    if (read.kind === "not text") return client.fail(apiError("invalid_model", "The body is not UTF-8."));
    if (read.kind !== "body") return;
    try {
      await admitAndServe(kind, key, read.text, client);
    } finally {
      deps.bodyBudget.release(key.organizationId, read.bytes);
    }
  }

  async function admitAndServe(kind: CallKind, key: KeySettings, text: string, client: ClientResponse): Promise<void> {
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
    const estimate = { organizationId, keyId, provider, model, ...tokens, costMicrocents: costOf(route.price, tokens) };
    const admission = await accounting.admit(key, organization, estimate);
    if (admission.kind === "unavailable") return client.fail(unavailable);
    if (admission.kind === "refused") return client.fail(overLimit(admission));
    try {
      await deps.serve({ call: checked, route, admitted: admission.call }, client);
    } finally {
      // Has no effect on a settled call. A call that failed before its settlement was not sent, so it costs nothing.
      admission.call.cancel();
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

  function setRateHeaders(key: KeySettings, client: ClientResponse): void {
    if (key.rateLimitRpm === undefined) return;
    const { remaining, retryInMs } = quotaLeases.rate(rpmAccount(key.id));
    client.header("x-ratelimit-limit-requests", String(key.rateLimitRpm));
    client.header("x-ratelimit-remaining-requests", String(Math.min(remaining, key.rateLimitRpm)));
    client.header("x-ratelimit-reset-requests", `${Math.ceil(retryInMs / 1_000)}s`);
  }

  function modelsOf(organization: Organization | undefined): string {
    const data = [...(organization?.providers ?? [])].flatMap(([name, settings]) => {
      const provider = providerNamed(configuration.catalog, name);
      if (provider === undefined || !settings.enabled) return [];
      const eu = hasEuRoute(provider, settings);
      if (organization?.euOnly === true && !eu) return [];
      return provider.models.map((model) => ({
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
    const client = createClientResponse(response, randomUUID(), metrics);
    respond(request, client).catch((error: unknown) => {
      log.error("call failed", { error });
      if (client.isStarted) response.destroy();
      else client.fail(apiError("internal_error", "The call could not be finished."));
    });
  };
}

const unavailable = apiError("accounting_unavailable", "The call cannot be accounted for now. Try again in a second.", {
  headers: { "retry-after": "1" },
});

function rateLimited(message: string, retryInMs: number): ApiError {
  const seconds = String(Math.max(1, Math.ceil(retryInMs / 1_000)));
  return apiError("rate_limited", message, { headers: { "retry-after": seconds } });
}

function overLimit({
  limit,
  remaining,
  requested,
}: {
  readonly limit: "tokens" | "cost";
  readonly remaining: number;
  readonly requested: number;
}): ApiError {
  if (limit === "tokens")
    return apiError(
      "token_ceiling_exceeded",
      `The key has ${remaining} tokens left this month, and the call may use ${requested}.`,
      { headers: noRetry },
    );
  const cents = (microcents: number) => (microcents / 1_000_000).toFixed(4);
  return apiError(
    "cost_circuit_open",
    `The organization has ${cents(remaining)} cents left this month, and the call may cost ${cents(requested)}.`,
    { headers: noRetry },
  );
}

function isError<T extends object>(value: T | ApiError): value is ApiError {
  return "status" in value && "code" in value && "message" in value;
}
