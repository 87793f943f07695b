import { create } from "@bufbuild/protobuf";
import { costAccount, microcentsPerCent, periodOf } from "@holdfast/common/inference/accounts.ts";
import {
  type Key,
  KeySchema,
  type OrganizationSettings,
  OrganizationSettingsSchema,
} from "@holdfast/proto/holdfast/inference/v1/feed_pb.ts";
import { openFor } from "#kernel/secrets/destined-secret.ts";
import type { Sealer } from "#kernel/secrets/sealer.ts";
import type { AccountStatus } from "../account/inference-account.ts";
import type { InferenceKey } from "../key/inference-key.ts";
import { type InferenceSettings, providerKeyBinding } from "../settings/inference-settings.ts";

interface SettingsDeps {
  readonly sealer: Sealer;
  readonly statusOf: (account: string) => AccountStatus;
  readonly now: number;
}

/** The message with an organization's settings for proxy processes; marked as removed if it has none. */
export function organizationFeedMessage(
  organizationId: string,
  settings: InferenceSettings | undefined,
  { sealer, statusOf, now }: SettingsDeps,
): OrganizationSettings {
  const limits = settings?.spec.limits;
  if (settings === undefined || limits === null || limits === undefined)
    return create(OrganizationSettingsSchema, { organizationId, removed: true });
  const period = periodOf(now);
  return create(OrganizationSettingsSchema, {
    organizationId,
    monthlyLimitMicrocents: BigInt(limits.monthlyCostLimitCents) * BigInt(microcentsPerCent),
    euOnly: limits.euOnly,
    circuitOpenPeriod: statusOf(costAccount(organizationId, period)).circuitOpenedAt === null ? "" : period,
    providers: Object.entries(settings.spec.providers).map(([name, provider]) => ({
      name,
      enabled: provider.enabled,
      apiKey: openFor(sealer, providerKeyBinding(organizationId, name, provider), provider.sealedKey),
      baseUrl: provider.baseUrl,
      euEndpoint: provider.euEndpoint,
      caCertificate: provider.caCertificate,
    })),
  });
}

/** The message with a key for proxy processes; marked as removed if it does not exist. */
export function keyFeedMessage(id: string, key: InferenceKey | undefined): Key {
  if (key === undefined) return create(KeySchema, { id, removed: true });
  const { secretHash, monthlyTokenLimit, rateLimitRpm, expiresAt, suspended } = key.spec;
  return create(KeySchema, {
    id,
    organizationId: key.metadata.organizationId,
    secretHash: Buffer.from(secretHash, "hex"),
    ...(monthlyTokenLimit !== null && { monthlyTokenLimit: BigInt(monthlyTokenLimit) }),
    ...(rateLimitRpm !== null && { rateLimitRpm }),
    expiresAtMs: BigInt(expiresAt ?? 0),
    suspended,
  });
}
