import type { Call, Idempotency, Principal } from "@holdfast/common/call.ts";
import { clientSignal, type Exchange } from "./exchange.ts";

interface Parts {
  readonly principal: Principal | undefined;
  readonly idempotency: Idempotency | undefined;
  readonly ifMatch: string | undefined;
  readonly minRevision: bigint | undefined;
}

/**
 * A call of REST, with the headers that its handler sets. A class, so that rarely used members cost other calls
 * nothing.
 */
export class RestCall implements Call {
  readonly requestId: string;
  /** As of the last check: a follower of a list is authorized again and again. */
  principal: Principal | undefined;
  readonly source: string;
  readonly idempotency: Idempotency | undefined;
  readonly ifMatch: string | undefined;
  readonly minRevision: bigint | undefined;
  readonly answerHeaders: Record<string, string> = {};
  private readonly exchange: Exchange;
  private left: AbortSignal | undefined;

  constructor(exchange: Exchange, { principal, idempotency, ifMatch, minRevision }: Parts) {
    this.requestId = exchange.requestId;
    this.source = exchange.source;
    this.principal = principal;
    this.idempotency = idempotency;
    this.ifMatch = ifMatch;
    this.minRevision = minRevision;
    this.exchange = exchange;
  }

  /** Made on first use: most reads are answered from memory and cannot be aborted. */
  get signal(): AbortSignal {
    this.left ??= clientSignal(this.exchange);
    return this.left;
  }

  setHeader(name: string, value: string): void {
    this.answerHeaders[name.toLowerCase()] = value;
  }
}
