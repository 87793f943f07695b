import { EgressFailure } from "@holdfast/egress/egress-failure.ts";
import type { EgressAnswer } from "@holdfast/egress/egress-answer.ts";
import type { EgressClient } from "@holdfast/egress/egress-client.ts";
import { type ApiError, apiError } from "../http/api-error.ts";
import { isRecord } from "./check-call.ts";
import type { Route } from "./route-call.ts";

/** An answer of the provider that is a success, its body still to be read. */
export type Upstream = { readonly answer: EgressAnswer } | { readonly error: ApiError; readonly usage: unknown };

/** For all of a call; silence ends it much sooner. */
const deadlineMs = 30 * 60_000;
/** Of one answer, also of a stream. */
const answerBytesMax = 64 << 20;
const errorBytesMax = 64 << 10;
const messageMax = 1_000;

/** Calls the provider. What it answers, and how it fails, becomes an answer of ours; redirects are refused, since they carry the key. */
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
  let answer: EgressAnswer;
  try {
    answer = await its.egress.request(route.url, {
      method: "POST",
      headers: {
        ...route.headers,
        "content-type": "application/json",
        accept: its.accept,
        "user-agent": "holdfast-inference",
      },
      body,
      deadlineMs,
      bytesMax: answerBytesMax,
      signal: its.signal,
      organizationId: its.organizationId,
      tls: route.tls,
    });
  } catch (error) {
    return { error: failureOf(error), usage: undefined };
  }
  const { status } = answer;
  if (status === 200) return { answer };
  const text = await textOf(answer);
  return { error: refusalOf(answer, messageOf(text)), usage: usageOf(text) };
}

/** Why there was no answer, in words that a client may know. */
export function failureOf(error: unknown): ApiError {
  if (isTimeout(error)) return apiError("upstream_timeout", "The provider did not answer in time.");
  if (error instanceof EgressFailure)
    return apiError("upstream_error", `The provider could not be called: ${error.message}`);
  return apiError("upstream_error", "The provider could not be called.");
}

function refusalOf({ status, headers }: EgressAnswer, message: string | undefined): ApiError {
  if (status === 401 || status === 403)
    return apiError(
      "provider_auth_failed",
      "The provider refuses the key that the organization has configured for it.",
    );
  const retryAfter = headers["retry-after"];
  const passed =
    retryAfter !== undefined && /^\d{1,6}$/.test(retryAfter) ? { headers: { "retry-after": retryAfter } } : {};
  if (status >= 400 && status < 500)
    return apiError("upstream_error", message ?? `The provider answered ${status}.`, { status, ...passed });
  if (status >= 300 && status < 400)
    return apiError("upstream_error", "The provider answered with a redirect, which is not followed.");
  return apiError("upstream_error", `The provider answered ${status}.`, passed);
}

async function textOf(answer: EgressAnswer): Promise<string> {
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  try {
    for await (const chunk of answer.body) {
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
