import { EgressFailure } from "@holdfast/egress/egress-failure.ts";
import type { EgressResponse } from "@holdfast/egress/egress-response.ts";
import type { EgressClient } from "@holdfast/egress/egress-client.ts";
import { type ApiError, apiError } from "../http/api-error.ts";
import { isRecord } from "./check-call.ts";
import type { Route } from "./route-call.ts";

/** A successful response of the provider, whose body is not read yet, or an error. */
export type Upstream = { readonly response: EgressResponse } | { readonly error: ApiError; readonly usage: unknown };

/** Time limit of a complete call; a silent provider ends it earlier. */
const deadlineMs = 30 * 60_000;
/** Maximum size of a response, including streams. */
const responseBytesMax = 64 << 20;
const errorBytesMax = 64 << 10;
const messageMax = 1_000;

/**
 * Calls the provider and maps its response or failure to ours. Redirects are refused, since the request contains the
 * key.
 */
export async function callUpstream(
  route: Route,
  body: string,
  its: {
    readonly egress: Pick<EgressClient, "request">;
    readonly organizationId: string;
    readonly accept: string;
    readonly signal: AbortSignal;
  },
): Promise<Upstream> {
  let response: EgressResponse;
  try {
    response = await its.egress.request(route.url, {
      method: "POST",
      headers: {
        ...route.headers,
        "content-type": "application/json",
        accept: its.accept,
        "user-agent": "holdfast-inference",
      },
      body,
      deadlineMs,
      bytesMax: responseBytesMax,
      signal: its.signal,
      organizationId: its.organizationId,
      tls: route.tls,
    });
  } catch (error) {
    return { error: failureOf(error), usage: undefined };
  }
  const { status } = response;
  if (status === 200) return { response };
  const text = await textOf(response);
  return { error: refusalOf(response, messageOf(text)), usage: usageOf(text) };
}

/** An error for the client without internal details. */
export function failureOf(error: unknown): ApiError {
  if (isTimeout(error)) return apiError("upstream_timeout", "The provider did not respond in time.");
  if (error instanceof EgressFailure)
    return apiError("upstream_error", `The provider could not be called: ${error.message}`);
  return apiError("upstream_error", "The provider could not be called.");
}

function refusalOf({ status, headers }: EgressResponse, message: string | undefined): ApiError {
  if (status === 401 || status === 403)
    return apiError(
      "provider_auth_failed",
      "The provider refuses the key that the organization has configured for it.",
    );
  const retryAfter = headers["retry-after"];
  const passed =
    retryAfter !== undefined && /^\d{1,6}$/.test(retryAfter) ? { headers: { "retry-after": retryAfter } } : {};
  if (status >= 400 && status < 500)
    return apiError("upstream_error", message ?? `The provider responded with ${status}.`, { status, ...passed });
  if (status >= 300 && status < 400)
    return apiError("upstream_error", "The provider responded with a redirect, which is not followed.");
  return apiError("upstream_error", `The provider responded with ${status}.`, passed);
}

async function textOf(response: EgressResponse): Promise<string> {
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  try {
    for await (const chunk of response.body) {
      bytes += chunk.length;
      if (bytes > errorBytesMax) break;
      chunks.push(chunk);
    }
  } catch {
    return "";
  }
  return Buffer.concat(chunks).toString();
}

function messageOf(text: string): string | undefined {
  const parsed = parse(text);
  const error = isRecord(parsed) ? parsed["error"] : undefined;
  const message = isRecord(error) ? error["message"] : error;
  return typeof message === "string" && message !== "" ? message.slice(0, messageMax) : undefined;
}

function usageOf(text: string): unknown {
  const parsed = parse(text);
  return isRecord(parsed) ? parsed["usage"] : undefined;
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
