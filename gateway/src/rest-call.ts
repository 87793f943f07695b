import type { Call, Idempotency, Principal } from "@holdfast/common/call.ts";
import { clientSignal, type Exchange, headerOf } from "./exchange.ts";

interface Parts {
  readonly principal: Principal | undefined;
  readonly idempotency: Idempotency | undefined;
  readonly ifMatch: string | undefined;
  readonly minRevision: bigint | undefined;
  readonly ownerKind: string | undefined;
}

/**
 * A call over REST, with the headers that its handler sets. A class with a getter, so that calls which never read the
 * signal do not pay for it.
 */
export class RestCall implements Call {
  readonly requestId: string;
  /** The caller at the last authorization: followed lists authorize the caller again before each page. */
  principal: Principal | undefined;
  readonly source: string;
  readonly idempotency: Idempotency | undefined;
  readonly ifMatch: string | undefined;
  readonly minRevision: bigint | undefined;
  readonly ownerKind: string | undefined;
  readonly responseHeaders: Record<string, string> = {};
  private readonly exchange: Exchange;
  private abortSignal: AbortSignal | undefined;

  constructor(exchange: Exchange, { principal, idempotency, ifMatch, minRevision, ownerKind }: Parts) {
    this.requestId = exchange.requestId;
    this.source = exchange.source;
    this.principal = principal;
    this.idempotency = idempotency;
    this.ifMatch = ifMatch;
    this.minRevision = minRevision;
    this.ownerKind = ownerKind;
    this.exchange = exchange;
  }

  /** Created on first use: most reads are served from memory and cannot be aborted. */
  get signal(): AbortSignal {
    this.abortSignal ??= clientSignal(this.exchange);
    return this.abortSignal;
  }

  get userAgent(): string | undefined {
    return headerOf(this.exchange.request, "user-agent");
  }

  setHeader(name: string, value: string): void {
    this.responseHeaders[name.toLowerCase()] = value;
  }
}
