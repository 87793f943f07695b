/**
 * The meaning of a destination's response for the items that were sent. `detail` is for users: a status and a
 * message of the platform.
 */
export type Verdict =
  | { readonly kind: "accepted" }
  /**
   * Some items were not accepted: `refused` of them are dropped, `again` are sent again (indices into the request's
   * items).
   */
  | { readonly kind: "partly"; readonly refused: number; readonly again: readonly number[]; readonly detail: string }
  /** At least one item is refused; it is found by bisection. */
  | { readonly kind: "divide"; readonly reason: "refused" | "too_old"; readonly detail: string }
  /** The request is too large. */
  | { readonly kind: "smaller"; readonly detail: string }
  /** Retry, within this tick if there is time. */
  | { readonly kind: "later"; readonly afterMs: number | undefined; readonly detail: string }
  /** Nothing is accepted until the configuration or the destination changes. Nothing is dropped. */
  | { readonly kind: "stop"; readonly detail: string }
  /** Something that the request `needs` does not exist yet. */
  | { readonly kind: "prepare"; readonly detail: string };

// biome-ignore format: a table, aligned so that it reads as one
const messages: Readonly<Record<number, string>> = {
  400: "the destination refuses the data",
  401: "the destination does not know the credential",
  402: "the destination asks for payment",
  403: "the destination refuses the credential",
  404: "there is nothing at this address",
  405: "the address takes no such requests",
  408: "the destination waited too long",
  413: "the destination takes no request of this size",
  415: "the destination does not take this format",
  422: "the destination refuses the data",
  429: "the destination asks for fewer requests",
};

/** Status and message, such as `HTTP 403: the destination refuses the credential`. */
export function messageOf(status: number): string {
  return `HTTP ${status}: ${messages[status] ?? fallbackMessage(status)}`;
}

function fallbackMessage(status: number): string {
  if (status >= 500) return "the destination fails";
  if (status >= 300 && status < 400) return "the destination leads elsewhere, and redirects are not followed";
  return "the destination refuses the request";
}

/** The verdict by the status alone, as most destinations define it. */
export function verdictOfStatus(status: number, retryAfterMs?: number): Verdict {
  const detail = messageOf(status);
  if (status >= 200 && status < 300) return { kind: "accepted" };
  if (status === 400 || status === 422) return { kind: "divide", reason: "refused", detail };
  if (status === 413) return { kind: "smaller", detail };
  if (status === 408 || status === 429 || status >= 500) return { kind: "later", afterMs: retryAfterMs, detail };
  return { kind: "stop", detail };
}
