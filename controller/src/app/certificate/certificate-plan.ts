import type { CertificateOrder, DomainCertificateStatus, IssuedCertificate } from "./domain-certificate.ts";

/** The next step to a domain's certificate. */
export type CertificateStep =
  | { readonly kind: "begin" }
  | { readonly kind: "continue"; readonly order: CertificateOrder }
  | { readonly kind: "wait"; readonly untilMs: number };

const minuteMs = 60_000;
const firstRetryMs = minuteMs;
const lastRetryMs = 360 * minuteMs;
/** Four times the delay after each failure stays below the limits of authorities: five failures an hour for a name. */
const retryFactor = 4;
/** Delay of the next attempt while something outside of the order is missing, such as the domain's address. */
const missingMs = minuteMs;
/** Length of reasons, which are texts of the authority. */
const errorMax = 400;

/** `directoryUrl`: the authority that orders go to; a certificate or an order of another one is not continued. */
export function nextStep(status: DomainCertificateStatus, directoryUrl: string, now: number): CertificateStep {
  const { issued, order, nextAttemptAt } = status;
  if (order?.directoryUrl === directoryUrl) return { kind: "continue", order };
  const renewAt = issued?.directoryUrl === directoryUrl ? issued.renewAt : 0;
  const dueAt = Math.max(renewAt, nextAttemptAt);
  return dueAt > now ? { kind: "wait", untilMs: dueAt } : { kind: "begin" };
}

export function afterBegin(status: DomainCertificateStatus, order: CertificateOrder): DomainCertificateStatus {
  return { ...status, order, attemptedAt: order.startedAt, error: null };
}

/** The order has failed: the next one follows after a growing delay. */
export function afterFailure(status: DomainCertificateStatus, reason: string, now: number): DomainCertificateStatus {
  const delayMs = Math.min(firstRetryMs * retryFactor ** Math.min(status.failures, 10), lastRetryMs);
  return {
    ...status,
    order: null,
    failures: status.failures + 1,
    nextAttemptAt: now + delayMs,
    attemptedAt: now,
    error: printable(reason),
  };
}

/** Something is missing, which is no failure of the order. */
export function afterMissing(status: DomainCertificateStatus, reason: string, now: number): DomainCertificateStatus {
  return { ...status, nextAttemptAt: now + missingMs, error: printable(reason) };
}

export function afterIssue(status: DomainCertificateStatus, issued: IssuedCertificate): DomainCertificateStatus {
  return { ...status, issued, order: null, failures: 0, nextAttemptAt: 0, error: null };
}

function printable(text: string): string {
  const line = text.replaceAll(/[\p{Cc}\s]+/gu, " ").trim();
  return line.length > errorMax ? `${line.slice(0, errorMax - 3)}...` : line;
}
