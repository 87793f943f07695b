import { describe, expect, test } from "vitest";
import { afterBegin, afterFailure, afterIssue, afterMissing, nextStep } from "./certificate-plan.ts";
import { type CertificateOrder, type DomainCertificateStatus, initialStatus } from "./domain-certificate.ts";

const directoryUrl = "https://authority.test/dir";
const minute = 60_000;
const order: CertificateOrder = {
  directoryUrl,
  url: "https://authority.test/order/1",
  sealedKey: "sealed",
  challenge: { url: "https://authority.test/challenge/1", token: "t", keyAuthorization: "t.print" },
  startedAt: 1_000,
};
const issued = { directoryUrl, chain: "chain", sealedKey: "sealed", issuer: "R11", expiresAt: 9_000, renewAt: 6_000 };

function failedTimes(count: number): DomainCertificateStatus {
  let status: DomainCertificateStatus = initialStatus;
  for (let at = 0; at < count; at += 1) status = afterFailure(afterBegin(status, order), "refused", 0);
  return status;
}

describe("the next step to a certificate", () => {
  test.each<[string, DomainCertificateStatus, number, ReturnType<typeof nextStep>]>([
    ["of a new domain", initialStatus, 0, { kind: "begin" }],
    ["with an order", afterBegin(initialStatus, order), 1_000, { kind: "continue", order }],
    ["with a certificate", afterIssue(initialStatus, issued), 5_999, { kind: "wait", untilMs: 6_000 }],
    ["with a third of the lifetime left", afterIssue(initialStatus, issued), 6_000, { kind: "begin" }],
    ["after a failure", failedTimes(1), minute - 1, { kind: "wait", untilMs: minute }],
    ["without an address", afterMissing(initialStatus, "none", 5), 6, { kind: "wait", untilMs: minute + 5 }],
  ])("%s", (_, status, now, expected) => expect(nextStep(status, directoryUrl, now)).toEqual(expected));

  test("begins again at another authority", () => {
    const other = "https://other.test/dir";
    expect(nextStep(afterBegin(initialStatus, order), other, 0)).toEqual({ kind: "begin" });
    expect(nextStep(afterIssue(initialStatus, issued), other, 0)).toEqual({ kind: "begin" });
  });

  test("waits longer after each failure, for six hours at most", () => {
    const delays = [1, 2, 3, 4, 5, 6, 40].map((count) => failedTimes(count).nextAttemptAt / minute);
    expect(delays).toEqual([1, 4, 16, 64, 256, 360, 360]);
  });

  test("retains a certificate, while failures of its renewal are counted", () => {
    const failed = afterFailure(afterBegin(afterIssue(failedTimes(3), issued), order), "too\nmany\u0007", 0);
    expect(failed).toMatchObject({ issued, order: null, failures: 1, error: "too many" });
    expect(afterFailure(initialStatus, "x".repeat(1_000), 0).error).toHaveLength(400);
  });
});
