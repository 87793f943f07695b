import type { Call } from "@holdfast/common/call.ts";
import { type ConcurrencyLimit, createConcurrencyLimit } from "./concurrency-limit.ts";
import { createGate, createRefusalReporter, type Gate, type ReportRefusal } from "./gate.ts";
import type { GatewayDeps } from "./gateway-deps.ts";
import type { ApiMethod } from "./method.ts";
import { revisionWaitMs } from "./request-headers.ts";
import { createValidation, type Validation } from "./validation.ts";

/** The checks and limits that REST and gRPC share, so that a call is treated alike over both. */
export interface CallGuards {
  readonly gate: Gate;
  readonly validation: Validation;
  readonly reportRefusal: ReportRefusal;
  /** Limits concurrent calls of methods with a weight over 1. */
  readonly expensiveCalls: ConcurrencyLimit;
  /**
   * Resolves once reads include the revision in the call's Holdfast-Revision header. Throws RATE_LIMITED when too many
   * calls of the same caller wait for a revision.
   */
  readonly waitForRevision: (method: ApiMethod, call: Pick<Call, "minRevision" | "principal">) => Promise<void>;
}

/** Each call runs work on a machine or in the history database, and may take seconds. */
const expensiveCallLimits = { credential: 16, organization: 48, all: 256 };

/** A wait ends in milliseconds unless etcd or this controller lags, so clients that read their own writes need few. */
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
