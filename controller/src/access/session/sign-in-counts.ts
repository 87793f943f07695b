import { HoldfastError } from "@holdfast/common/errors.ts";
import type { ProcessGauge } from "#kernel/metrics/process-metrics.ts";

type Result = "ok" | "refused" | "limited" | "failed";

/** Counts sign-ins in browsers by result, since the start of this controller. */
export interface SignInCounts {
  count(result: Result): void;
  /** Counts a failed sign-in by the result that its error implies. */
  countError(error: unknown): void;
  readonly metric: ProcessGauge;
}

export function createSignInCounts(): SignInCounts {
  const values = new Map<Result, number>([
    ["ok", 0],
    ["refused", 0],
    ["limited", 0],
    ["failed", 0],
  ]);
  const count = (result: Result) => {
    values.set(result, (values.get(result) ?? 0) + 1);
  };
  return {
    count,
    countError: (error) => count(resultOf(HoldfastError.from(error))),
    metric: {
      name: "session_sign_ins",
      help: "Sign-ins in browsers since this controller started, by result",
      read: () => ({ label: "result", values }),
    },
  };
}

/** `refused`: wrong password or code; `limited`: too many attempts; `failed`: an error of the controller. */
function resultOf({ key, entry }: HoldfastError): Result {
  if (key === "RATE_LIMITED") return "limited";
  return entry.status < 500 ? "refused" : "failed";
}
