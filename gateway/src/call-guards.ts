import type { Call } from "@holdfast/common/call.ts";
import { type ConcurrencyLimit, createConcurrencyLimit } from "./concurrency-limit.ts";
import { createGate, createRefusalReporter, type Gate, type ReportRefusal } from "./gate.ts";
import type { GatewayDeps } from "./gateway-deps.ts";
import type { ApiMethod } from "./method.ts";
import { revisionWaitMs } from "./request-headers.ts";
import { createValidation, type Validation } from "./validation.ts";

/** The checks and limits that REST and gRPC share. */
export interface CallGuards {
  readonly gate: Gate;
  readonly validation: Validation;
  readonly reportRefusal: ReportRefusal;
  /** Limits concurrent calls of methods whose weight is above 1. */
  readonly expensiveCalls: ConcurrencyLimit;
  /**
   * Resolves when reads include the revision in the call's Holdfast-Revision header. Throws RATE_LIMITED if too many
   * calls of the same caller wait for a revision.
   */
  readonly waitForRevision: (method: ApiMethod, call: Pick<Call, "minRevision" | "principal">) => Promise<void>;
}

/** Limits of concurrent expensive calls, each of which works on a machine or in the history and may take seconds. */
const expensiveCallLimits = { credential: 16, organization: 48, all: 256 };

/** Limits of concurrent waits. A wait takes milliseconds unless etcd or this controller lags, so clients need few. */
const revisionWaitLimits = { credential: 64, organization: 256, all: 2_000 };

export function createCallGuards(deps: GatewayDeps): CallGuards {
  const reportRefusal = createRefusalReporter(deps.refused);
  return {
    gate: createGate({ ...deps, reportRefusal }),
    validation: createValidation(),
    reportRefusal,
    expensiveCalls: createConcurrencyLimit(
      deps.concurrencyLimits?.expensiveCalls ?? expensiveCallLimits,
      "calls of this kind",
    ),
    waitForRevision: createRevisionWait(deps),
  };
}

function createRevisionWait({ concurrencyLimits, reached }: GatewayDeps): CallGuards["waitForRevision"] {
  const waits = createConcurrencyLimit(concurrencyLimits?.waits ?? revisionWaitLimits, "waits for a Holdfast-Revision");
  return async ({ readOnly }, { minRevision, principal }) => {
    if (minRevision === undefined || !readOnly) return;
    const release = waits.take(principal);
    try {
      await reached(minRevision, revisionWaitMs);
    } finally {
      release();
    }
  };
}
