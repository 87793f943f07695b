import { EgressFailure } from "@holdfast/egress/egress-failure.ts";
import type { EgressResponse } from "@holdfast/egress/egress-response.ts";
import type { EgressClient } from "@holdfast/egress/egress-client.ts";
import { type ApiError, apiError } from "../http/api-error.ts";
import { isRecord } from "./check-call.ts";
import { errorInAnswer, errorInRefusal, type ProviderError, providerErrorOf } from "./provider-error.ts";
import type { Route } from "./route-call.ts";

/** A successful response of the provider, whose body is not read yet, or an error. */
export type Upstream = { readonly response: EgressResponse } | { readonly error: ApiError; readonly usage: unknown };

/** Time limit of a complete call; the limit on silence of the provider is shorter. */
const deadlineMs = 30 * 60_000;
/** Maximum size of a response, including streams. */
const maxResponseBytes = 64 << 20;
const maxErrorBytes = 64 << 10;

/**
 * Calls the provider, and maps a failure or an error response to an error for the client. Redirects are refused, since
 * the request contains the key.
 */
export async function callUpstream(
  route: Route,
  body: string,
  options: {
    readonly egress: Pick<EgressClient, "request">;
    readonly organizationId: string;
    readonly accept: string;
    readonly signal: AbortSignal;
  },
): Promise<Upstream> {
  let response: EgressResponse;
  try {
    response = await options.egress.request(route.url, {
      method: "POST",
      headers: {
        ...route.headers,
        "content-type": "application/json",
        accept: options.accept,
        "user-agent": "holdfast-inference",
      },
      body,
      deadlineMs,
      silenceMs: route.silenceMs,
      maxBytes: maxResponseBytes,
      signal: options.signal,
      organizationId: options.organizationId,
      tls: route.tls,
    });
  } catch (error) {
    return { error: failureOf(error), usage: undefined };
  }
  const { status, headers } = response;
  const coding = headers["content-encoding"] ?? "identity";
  if (coding !== "identity") {
    await response.drop();
    const message = `The provider's response has the content coding ${coding.slice(0, 64)}, which was not requested.`;
    return { error: apiError("upstream_error", message), usage: undefined };
  }
  if (status === 200) return { response };
  const text = await textOf(response);
  const refusal = parse(text);
  const usage = isRecord(refusal) ? refusal["usage"] : undefined;
  return { error: refusalOf(response, errorInRefusal(withoutKey(text, route))), usage };
}

/** The error for a response with status 200 that is not a completion, with the provider's message. */
export function notACompletion(text: string, route: Route): ApiError {
  const reported = errorInAnswer(withoutKey(text, route));
  if (reported?.message === undefined)
    return apiError("upstream_error", "The provider's response is not a completion.");
  return failedWith(reported);
}

/** The error that the provider sent within a stream. */
export function errorInStream(data: unknown, route: Route): ApiError {
  const reported = providerErrorOf(parse(withoutKey(JSON.stringify(data), route))) ?? {};
  return failedWith({ message: "The provider ended the stream with an error.", ...reported });
}

/** The code remains the proxy's, because the status is: a provider may use one of the proxy's codes. */
function failedWith({ message = "", param, ...cause }: ProviderError): ApiError {
  return apiError("upstream_error", message, {
    ...(param !== undefined && { param }),
    ...(Object.keys(cause).length > 0 && { cause }),
  });
}

/** The text of a provider without the key, also as in JSON: some providers quote the key that they refuse. */
function withoutKey(text: string, { apiKey }: Route): string {
  if (apiKey === "") return text;
  return text.replaceAll(apiKey, "***").replaceAll(JSON.stringify(apiKey).slice(1, -1), "***");
}

/** An error for the client without internal details. */
export function failureOf(error: unknown): ApiError {
  if (isTimeout(error)) return apiError("upstream_timeout", "The provider did not respond in time.");
  if (error instanceof EgressFailure)
    return apiError("upstream_error", `The provider could not be called: ${error.message}`);
  return apiError("upstream_error", "The provider could not be called.");
}

function refusalOf({ status, headers }: EgressResponse, reported: ProviderError | undefined): ApiError {
  const refusesKey = "The provider refuses the key that the organization has configured for it.";
  // The message of a 401 is not forwarded, because providers quote parts of the key in it.
  if (status === 401) return apiError("provider_auth_failed", refusesKey);
  if (status === 403) return apiError("provider_auth_failed", reported?.message ?? refusesKey);
  const retryAfter = headers["retry-after"];
  const forwarded =
    retryAfter !== undefined && /^\d{1,6}$/.test(retryAfter) ? { headers: { "retry-after": retryAfter } } : {};
  if (status >= 400 && status < 500) {
    const { message = `The provider responded with ${status}.`, param, ...provider } = reported ?? {};
    return apiError("upstream_error", message, {
      status,
      ...forwarded,
      ...(param !== undefined && { param }),
      provider,
    });
  }
  if (status >= 300 && status < 400)
    return apiError("upstream_error", "The provider responded with a redirect, which is not followed.");
  const words = reported?.message === undefined ? "." : `: ${reported.message}`;
  return apiError("upstream_error", `The provider responded with ${status}${words}`, forwarded);
}

/** The start of the body, up to its end or a failure. */
async function textOf(response: EgressResponse): Promise<string> {
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  try {
    for await (const chunk of response.body) {
      chunks.push(chunk);
      bytes += chunk.length;
      if (bytes >= maxErrorBytes) break;
    }
  } catch (error) {
    // The status is the error; a body that is cut off only has fewer words.
    if (!(error instanceof Error)) throw error;
  }
  return Buffer.concat(chunks).subarray(0, maxErrorBytes).toString();
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function isTimeout(error: unknown): boolean {
  if (error instanceof EgressFailure && error.kind === "timeout") return true;
  for (let at: unknown = error; at instanceof Error; at = at.cause)
    if ("code" in at && /^UND_ERR_(HEADERS|BODY|CONNECT)_TIMEOUT$/.test(String(at.code))) return true;
  return false;
}
