import type { Call, Idempotency, Principal } from "@holdfast/common/call.ts";
import { clientSignal, type Exchange } from "./exchange.ts";

interface Parts {
  readonly principal: Principal | undefined;
  readonly idempotency: Idempotency | undefined;
  readonly ifMatch: string | undefined;
  readonly minRevision: bigint | undefined;
}

/** A call of REST, with the headers that its handler sets. A class, so that what few calls ask for costs the others nothing. */
export class RestCall implements Call {
  readonly requestId: string;
  readonly principal: Principal | undefined;
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

  /** Made when it is asked for: most reads are answered from memory and nobody can wait for them. */
  get signal(): AbortSignal {
    this.left ??= clientSignal(this.exchange);
    return this.left;
  }

  setHeader(name: string, value: string): void {
    this.answerHeaders[name.toLowerCase()] = value;
  }
}
