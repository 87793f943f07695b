import type { Call, Idempotency, Principal } from "@holdfast/common/call.ts";
import { clientSignal, type Exchange } from "./exchange.ts";

/** A call of REST, with the headers that its handler sets. */
export interface RestCall extends Call {
  readonly answerHeaders: Readonly<Record<string, string>>;
}

interface Parts {
  readonly exchange: Exchange;
  readonly principal: Principal | undefined;
  readonly idempotency: Idempotency | undefined;
  readonly ifMatch: string | undefined;
  readonly minRevision: bigint | undefined;
}

export function openRestCall({ exchange, principal, idempotency, ifMatch, minRevision }: Parts): RestCall {
  const answerHeaders: Record<string, string> = {};
  let signal: AbortSignal | undefined;
  return {
    requestId: exchange.requestId,
    principal,
    source: exchange.source,
    // Most reads are answered from memory and never look at it.
    get signal() {
      signal ??= clientSignal(exchange);
      return signal;
    },
    idempotency,
    ifMatch,
    minRevision,
    answerHeaders,
    setHeader(name, value) {
      answerHeaders[name.toLowerCase()] = value;
    },
  };
}
