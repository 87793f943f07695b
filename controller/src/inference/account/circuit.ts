import { microcentsPerCent, parseAccount } from "@holdfast/common/inference/accounts.ts";
import { type InferenceLimits, inferenceSettingsKind } from "../settings/inference-settings.ts";
import { opensCircuit } from "./quota-lease-plan.ts";
import type { AccountStatus } from "./inference-account.ts";
import type { Changes } from "#kernel/store/unit-of-work.ts";

/** Minimum interval between two events about usage above reservations. */
const aboveReservationEveryMs = 24 * 3_600_000;

/**
 * The cost account of an organization after a change: emits the budget warning and opens the circuit where the change
 * causes it.
 */
export function applyCostLimits(
  unit: Changes,
  id: string,
  organizationId: string,
  status: AccountStatus,
  change: {
    readonly limits: InferenceLimits;
    readonly refused?: { readonly least: number; readonly reserved: number };
    readonly modelAboveReservation?: string;
    readonly now: number;
  },
): AccountStatus {
  const { limits, refused, modelAboveReservation: model, now } = change;
  const limit = limits.monthlyCostLimitCents * microcentsPerCent;
  const event = (type: string, more: Readonly<Record<string, unknown>> = {}) =>
    unit.event({
      type,
      organizationId,
      objectKind: inferenceSettingsKind.name,
      objectId: organizationId,
      data: {
        period: parseAccount(id)?.period ?? "",
        spent_cents: status.settled / microcentsPerCent,
        monthly_cost_limit_cents: limits.monthlyCostLimitCents,
        ...more,
      },
    });
  let after = status;
  if (after.warnedAt === null && after.settled >= (limit * limits.alertPct) / 100 && after.settled > 0) {
    event("inference.budget_warning");
    after = { ...after, warnedAt: now };
  }
  if (model !== undefined && now - (after.aboveReservationAt ?? 0) >= aboveReservationEveryMs) {
    event("inference.usage_above_reservation", { model });
    after = { ...after, aboveReservationAt: now };
  }
  if (opensCircuit(after, limit, refused)) {
    event("inference.circuit_opened");
    after = { ...after, circuitOpenedAt: now };
  }
  return after;
}
