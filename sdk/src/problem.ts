import type { Problem } from "./errors.ts";

/** The problem document of an error response; a substitute when a proxy answered without one. */
export async function problemOf(response: Response): Promise<Problem> {
  const unreadable = {
    type: "about:blank",
    title: response.statusText,
    status: response.status,
    detail: `HTTP ${response.status}`,
    instance: "",
    code: "unknown",
    errors: [],
  };
  const body = await bodyOf(response);
  // Connect has its own error format with code and message, and status 400 for failed preconditions.
  const detail = body.detail ?? body.message ?? unreadable.detail;
  const status = body.code === "failed_precondition" ? 409 : response.status;
  return { ...unreadable, ...body, detail, status };
}

/** Milliseconds of a Retry-After header in seconds or as a date (RFC 9110, 10.2.3); undefined when invalid. */
export function retryAfterMsOf(header: string | null, now: number): number | undefined {
  if (header === null) return undefined;
  if (/^\d+$/.test(header)) return Number(header) * 1_000;
  const time = Date.parse(header);
  return Number.isNaN(time) ? undefined : Math.max(0, time - now);
}

async function bodyOf(response: Response): Promise<Partial<Problem> & { message?: string }> {
  try {
    const body: unknown = JSON.parse(await response.text());
    return typeof body === "object" && body !== null ? body : {};
  } catch {
    return {};
  }
}
