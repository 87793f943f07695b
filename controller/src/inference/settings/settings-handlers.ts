import type { Handlers } from "@holdfast/common/call.ts";
import { HoldfastError } from "@holdfast/common/errors.ts";
import { costAccount, microcentsPerCent, periodOf } from "@holdfast/common/inference/accounts.ts";
import type { InferenceService, PutInferenceSettingsRequest } from "@holdfast/proto/holdfast/v1/inference_pb.ts";
import { newMetadata, nextMetadata } from "#kernel/store/resource.ts";
import { mutate } from "#access/mutate.ts";
import { inferenceAccountKind } from "../account/inference-account.ts";
import { type InferenceApiDeps, ownOrganization } from "../inference-api-deps.ts";
import { settingsMessage } from "../inference-message.ts";
import { type InferenceLimits, type InferenceSettings, inferenceSettingsKind } from "./inference-settings.ts";

const defaultAlertPct = 80;

type SettingsHandlers = Pick<Handlers<typeof InferenceService>, "putInferenceSettings" | "getInferenceSettings">;

/** The RPCs of an organization's limits. */
export function createSettingsHandlers(deps: InferenceApiDeps): SettingsHandlers {
  const { settings, accounts, processes, ledger, clock, feed } = deps;
  const isLost = (processId: string) => (processes.get(processId)?.object.status.lostAt ?? null) !== null;
  const message = (organizationId: string, limits: InferenceLimits) =>
    settingsMessage(organizationId, limits, { statusOf: ledger.statusOf, isLost, now: clock.now() });

  return {
    async putInferenceSettings(request, call) {
      const organizationId = ownOrganization(request.orgId, call);
      const account = costAccount(organizationId, periodOf(clock.now()));
      const mutation = {
        action: "inference-settings.put",
        kind: inferenceSettingsKind.name,
        visibleIn: [settings, accounts],
      };
      const limits = await mutate(deps, call, mutation, async (unit) => {
        const before = settings.get(organizationId);
        const object = before?.object ?? newSettings(organizationId, clock.now());
        const after = limitsAfter(object.spec.limits, request);
        const changed: InferenceSettings = {
          ...object,
          metadata: before === undefined ? object.metadata : nextMetadata(object.metadata, clock.now()),
          spec: { ...object.spec, limits: after },
        };
        if (before === undefined) unit.create(inferenceSettingsKind, changed);
        else unit.update(inferenceSettingsKind, before, changed);
        if (request.resetCircuit === true) {
          const cost = await accounts.getCurrent(account, call.signal);
          const { settled = 0, circuitOpenedAt = null } = cost?.object.status ?? {};
          if (settled >= after.monthlyCostLimitCents * microcentsPerCent)
            throw new HoldfastError(
              "LIMIT_STILL_EXCEEDED",
              `The month has cost ${settled / microcentsPerCent} of ${after.monthlyCostLimitCents} cents; raise the limit above that.`,
            );
          if (cost !== undefined && circuitOpenedAt !== null) {
            const status = { ...cost.object.status, circuitOpenedAt: null };
            unit.update(inferenceAccountKind, cost, { ...cost.object, status });
            unit.event({
              type: "inference.circuit_closed",
              organizationId,
              objectKind: inferenceSettingsKind.name,
              objectId: organizationId,
              data: {
                period: periodOf(clock.now()),
                spent_cents: settled / microcentsPerCent,
                monthly_cost_limit_cents: after.monthlyCostLimitCents,
              },
            });
          }
        }
        return { id: organizationId, result: after, stored: message(organizationId, after) };
      });
      await ledger.recallExcess(account, call.signal);
      await feed.untilServed();
      return message(organizationId, limits);
    },

    async getInferenceSettings({ orgId }, call) {
      const organizationId = ownOrganization(orgId, call);
      const limits = settings.get(organizationId)?.object.spec.limits;
      if (limits === null || limits === undefined)
        throw new HoldfastError("OBJECT_NOT_FOUND", "The organization has no settings for inference yet.");
      return message(organizationId, limits);
    },
  };
}

export function newSettings(organizationId: string, now: number): InferenceSettings {
  return {
    metadata: newMetadata(organizationId, now, { organizationId }),
    spec: { limits: null, providers: {} },
    status: {},
  };
}

/** The limits after a request: values of the request replace stored ones. */
function limitsAfter(
  before: InferenceLimits | null,
  requested: Pick<PutInferenceSettingsRequest, "monthlyCostLimitCents" | "euOnly" | "alertPct">,
): InferenceLimits {
  const limit =
    requested.monthlyCostLimitCents === undefined
      ? before?.monthlyCostLimitCents
      : Number(requested.monthlyCostLimitCents);
  if (limit === undefined)
    throw new HoldfastError(
      "MONTHLY_COST_LIMIT_REQUIRED",
      "The first settings of an organization need monthly_cost_limit_cents.",
      {
        errors: [
          {
            field: "monthly_cost_limit_cents",
            pointer: "/monthly_cost_limit_cents",
            code: "required",
            detail: "is required in the first settings",
          },
        ],
      },
    );
  return {
    monthlyCostLimitCents: limit,
    euOnly: requested.euOnly ?? before?.euOnly ?? false,
    alertPct: requested.alertPct ?? before?.alertPct ?? defaultAlertPct,
  };
}
