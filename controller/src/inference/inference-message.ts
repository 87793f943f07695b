import { create } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { costAccount, microcentsPerCent, periodOf, periodStart } from "@holdfast/common/inference/accounts.ts";
import { type Catalog, hasEuRoute, providerNamed } from "@holdfast/common/inference/catalog.ts";
import {
  type CreatedInferenceKey,
  CreatedInferenceKeySchema,
  type InferenceKey as InferenceKeyMessage,
  InferenceKeySchema,
  InferenceKeyStatus,
  type InferenceProvider,
  InferenceProviderSchema,
  type InferenceSettings as InferenceSettingsMessage,
  InferenceSettingsSchema,
} from "@holdfast/proto/holdfast/v1/inference_pb.ts";
import { leasedOf } from "./account/quota-lease-plan.ts";
import type { AccountStatus } from "./account/inference-account.ts";
import type { InferenceKey } from "./key/inference-key.ts";
import type { ConfiguredProvider, InferenceLimits } from "./settings/inference-settings.ts";

export function providerMessage(name: string, configured: ConfiguredProvider, catalog: Catalog): InferenceProvider {
  const catalogProvider = providerNamed(catalog, name);
  return create(InferenceProviderSchema, {
    provider: name,
    enabled: configured.enabled,
    ...(configured.baseUrl !== "" && { baseUrl: configured.baseUrl }),
    euEndpoint: configured.euEndpoint,
    hasApiKey: true,
    capabilities: {
      chat: catalogProvider?.capabilities.chat ?? false,
      embeddings: catalogProvider?.capabilities.embeddings ?? false,
    },
    euRoute: catalogProvider !== undefined && hasEuRoute(catalogProvider, configured),
    ...(configured.caCertificate !== "" && { caCertificate: configured.caCertificate }),
    updatedAt: timestampFromMs(configured.updatedAt),
  });
}

export function settingsMessage(
  organizationId: string,
  { monthlyCostLimitCents, euOnly, alertPct }: InferenceLimits,
  {
    statusOf,
    isLost,
    now,
  }: {
    readonly statusOf: (account: string) => AccountStatus;
    readonly isLost: (processId: string) => boolean;
    readonly now: number;
  },
): InferenceSettingsMessage {
  const period = periodOf(now);
  const { settled, leases, circuitOpenedAt, unaccounted = {} } = statusOf(costAccount(organizationId, period));
  return create(InferenceSettingsSchema, {
    monthlyCostLimitCents: BigInt(monthlyCostLimitCents),
    euOnly,
    alertPct,
    circuit: {
      open: circuitOpenedAt !== null,
      ...(circuitOpenedAt !== null && { openedAt: timestampFromMs(circuitOpenedAt) }),
      spentCents: settled / microcentsPerCent,
      reservedCents: leasedOf(leases) / microcentsPerCent,
      unaccountedCents:
        leasedOf(Object.fromEntries(Object.entries(unaccounted).filter(([id]) => isLost(id)))) / microcentsPerCent,
      periodStart: timestampFromMs(periodStart(period)),
    },
  });
}

export function keyMessage({ metadata, spec }: InferenceKey): InferenceKeyMessage {
  return create(InferenceKeySchema, {
    ...fieldsOf(spec),
    ...namesOf(metadata),
    updatedAt: timestampFromMs(metadata.updatedAt),
  });
}

export function createdKeyMessage({ metadata, spec }: InferenceKey, secret: string): CreatedInferenceKey {
  const orgId = metadata.organizationId;
  return create(CreatedInferenceKeySchema, { ...fieldsOf(spec), ...namesOf(metadata), secret, orgId });
}

function namesOf({ id, name, createdAt }: InferenceKey["metadata"]) {
  return { id, name, createdAt: timestampFromMs(createdAt) };
}

function fieldsOf({ monthlyTokenLimit, rateLimitRpm, expiresAt, suspended }: InferenceKey["spec"]) {
  return {
    status: suspended ? InferenceKeyStatus.SUSPENDED : InferenceKeyStatus.ACTIVE,
    ...(monthlyTokenLimit !== null && { monthlyTokenLimit: BigInt(monthlyTokenLimit) }),
    ...(rateLimitRpm !== null && { rateLimitRpm }),
    ...(expiresAt !== null && { expiresAt: timestampFromMs(expiresAt) }),
  };
}
