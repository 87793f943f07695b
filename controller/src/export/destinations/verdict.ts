/**
 * The meaning of a destination's response for the items that were sent. `detail` is for users: a status and a
 * message of Holdfast, never text of the destination.
 */
export type Verdict =
  | { readonly kind: "accepted" }
  /**
   * Some items were not accepted: `refused` of them are dropped, `again` are sent again (indices into the request's
   * items).
   */
  | { readonly kind: "partly"; readonly refused: number; readonly again: readonly number[]; readonly detail: string }
  /** At least one item is refused. It is found by bisection; `too_old` drops all items of its node and time. */
  | { readonly kind: "divide"; readonly reason: "refused" | "too_old"; readonly detail: string }
  /** The request is too large. */
  | { readonly kind: "smaller"; readonly detail: string }
  /** Retry, within this tick if there is time. */
  | { readonly kind: "later"; readonly afterMs: number | undefined; readonly detail: string }
  /** Nothing is accepted until the configuration or the destination changes. Nothing is dropped. */
  | { readonly kind: "stop"; readonly detail: string }
  /** A prerequisite of the request does not exist yet: send its `needs` first. */
  | { readonly kind: "prepare"; readonly detail: string };

/**
 * The meaning of a status: the items are accepted; sent again later; sent in halves until the refused ones are found;
 * sent in halves because the request is too large; or nothing is sent until the configuration is changed.
 */
type Meaning = "accept" | "wait" | "refuse" | "halve" | "stop";

// biome-ignore format: a table, aligned so that it reads as one
const statuses: ReadonlyMap<number, readonly [meaning: Meaning, message: string]> = new Map([
  [400, ["refuse", "the destination refuses the data"]],
  [401, ["stop",   "the destination does not accept the credential"]],
  [402, ["stop",   "the destination requires payment"]],
  [403, ["stop",   "the destination refuses the credential"]],
  [404, ["stop",   "there is nothing at this address"]],
  [405, ["stop",   "the address takes no such requests"]],
  [406, ["stop",   "the destination offers no format that is accepted here"]],
  [407, ["stop",   "a proxy requires a credential"]],
  [408, ["wait",   "the destination waited too long"]],
  [409, ["refuse", "the data conflict with those of the destination"]],
  [410, ["stop",   "the address does not exist any more"]],
  [411, ["stop",   "the destination does not take this format"]],
  [412, ["stop",   "the destination refuses the request"]],
  [413, ["halve",  "the destination takes no request of this size"]],
  [414, ["stop",   "the URL is too long for the destination"]],
  [415, ["stop",   "the destination does not take this format"]],
  [417, ["stop",   "the destination refuses the request"]],
  [421, ["stop",   "the destination does not serve this host name"]],
  [422, ["refuse", "the destination refuses the data"]],
  [423, ["wait",   "the destination is locked"]],
  [424, ["wait",   "the destination fails"]],
  [425, ["wait",   "the destination requests another attempt"]],
  [426, ["stop",   "the destination requires another protocol"]],
  [428, ["stop",   "the destination refuses the request"]],
  [429, ["wait",   "the destination limits the rate of requests"]],
  [431, ["stop",   "the headers are too large for the destination"]],
  [451, ["stop",   "the destination is not allowed to take data from here"]],
  [501, ["stop",   "the destination does not support this request"]],
  [505, ["stop",   "the destination does not support this version of HTTP"]],
  [511, ["stop",   "the network requires a sign-in"]],
]);

/** The meaning of statuses that are not in the table, by their first digit. */
const classes: ReadonlyMap<number, readonly [meaning: Meaning, message: string]> = new Map([
  [1, ["wait", "the response is incomplete"]],
  [2, ["accept", ""]],
  [3, ["stop", "the destination redirects, and redirects are not followed"]],
  [4, ["stop", "the destination refuses the request"]],
  [5, ["wait", "the destination fails"]],
]);

const unknownStatus = ["stop", "the response is not HTTP"] as const;

function meaningOf(status: number): readonly [meaning: Meaning, message: string] {
  return statuses.get(status) ?? classes.get(Math.floor(status / 100)) ?? unknownStatus;
}

/** Status and message, such as `HTTP 403: the destination refuses the credential`. */
export function messageOf(status: number): string {
  return `HTTP ${status}: ${meaningOf(status)[1]}`;
}

/** True if a retry of the same request may be accepted. */
export function isTransient(status: number): boolean {
  return meaningOf(status)[0] === "wait";
}

/** The verdict that the status implies, without a look at the body. */
export function verdictOfStatus(status: number, retryAfterMs?: number): Verdict {
  const detail = messageOf(status);
  switch (meaningOf(status)[0]) {
    case "accept":
      return { kind: "accepted" };
    case "refuse":
      return { kind: "divide", reason: "refused", detail };
    case "halve":
      return { kind: "smaller", detail };
    case "wait":
      return { kind: "later", afterMs: retryAfterMs, detail };
    case "stop":
      return { kind: "stop", detail };
  }
}

/** The verdict on a refusal whose text is about the items' times: they are too old, or the destination has them. */
export function tooOldVerdict(status: number): Verdict {
  return {
    kind: "divide",
    reason: "too_old",
    detail: `HTTP ${status}: the destination refuses the data as too old or repeated`,
  };
}

/** Responses that a web server or a sign-in page sends for any path. */
const webPage = /^\s*(<!doctype html|<html)/i;

/** True if an accepted response is a web page: another server than the destination responded. */
export function isWebPage({ status, body }: { readonly status: number; readonly body: Buffer }): boolean {
  return status >= 200 && status < 300 && webPage.test(body.toString("latin1", 0, 1_024));
}

/** The verdict on a web page in place of a response. */
export function webPageVerdict(status: number): Verdict {
  return { kind: "stop", detail: `HTTP ${status}: the address responds with a web page; check the URL` };
}
