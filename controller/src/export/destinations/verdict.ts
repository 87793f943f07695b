/** What a destination's answer means for what was sent. `why` is for the user: a status and our own words. */
export type Verdict =
  | { readonly kind: "accepted" }
  /** Some items were not taken: those are gone for good, or are sent again. Indices into the request's items. */
  | { readonly kind: "partly"; readonly refused: number; readonly again: readonly number[]; readonly why: string }
  /** Something in it is refused; halves tell what. */
  | { readonly kind: "divide"; readonly reason: "refused" | "too_old"; readonly why: string }
  /** It is too large. */
  | { readonly kind: "smaller"; readonly why: string }
  /** Again, in this tick if the time is there. */
  | { readonly kind: "later"; readonly afterMs: number | undefined; readonly why: string }
  /** Nothing will be taken until somebody changes something. Nothing is dropped. */
  | { readonly kind: "stop"; readonly why: string }
  /** What the request `needs` is missing. */
  | { readonly kind: "prepare"; readonly why: string };

// biome-ignore format: a table, aligned so that it reads as one
const words: Readonly<Record<number, string>> = {
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

/** Status and our own words, such as `HTTP 403: the destination refuses the credential`. */
export function wordsOf(status: number): string {
  return `HTTP ${status}: ${words[status] ?? otherWords(status)}`;
}

function otherWords(status: number): string {
  if (status >= 500) return "the destination fails";
  if (status >= 300 && status < 400) return "the destination leads elsewhere, and redirects are not followed";
  return "the destination refuses the request";
}

/** By the status alone, as most destinations mean it. */
export function verdictOfStatus(status: number, retryAfterMs?: number): Verdict {
  const why = wordsOf(status);
  if (status >= 200 && status < 300) return { kind: "accepted" };
  if (status === 400 || status === 422) return { kind: "divide", reason: "refused", why };
  if (status === 413) return { kind: "smaller", why };
  if (status === 408 || status === 429 || status >= 500) return { kind: "later", afterMs: retryAfterMs, why };
  return { kind: "stop", why };
}
