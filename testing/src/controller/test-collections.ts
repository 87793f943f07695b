import { archiveKind } from "@holdfast/controller/services/backup/archive/archive.ts";
import { backupKeyKind } from "@holdfast/controller/services/backup/backup-key.ts";
import { drillKind } from "@holdfast/controller/services/backup/drill/drill.ts";
import { backupKind } from "@holdfast/controller/services/backup/backup.ts";
import { agentRolloutKind } from "@holdfast/controller/fleet/rollout/agent-rollout.ts";
import {
  apiKeyKind,
  credentialUseKind,
  tokenKind,
  userKind,
} from "@holdfast/controller/access/credential/credential.ts";
import { sessionCodeKind, sessionKind } from "@holdfast/controller/access/session/session.ts";
import { membershipKind } from "@holdfast/controller/access/organization/membership.ts";
import { organizationKind } from "@holdfast/controller/access/organization/organization.ts";
import { databaseUserKind } from "@holdfast/controller/services/contents/user/database-user.ts";
import { engineChangeKind } from "@holdfast/controller/services/contents/change/engine-change.ts";
import { taskKind } from "@holdfast/controller/fleet/task/task.ts";
import { hostKind } from "@holdfast/controller/fleet/host/host.ts";
import { machineKind } from "@holdfast/controller/fleet/machine/machine.ts";
import { managedServiceKind } from "@holdfast/controller/services/service/managed-service.ts";
import { rolloutRecordKind } from "@holdfast/controller/services/maintenance/rollout-record.ts";
import { nodeImageKind } from "@holdfast/controller/services/maintenance/node-image.ts";
import { operationKind } from "@holdfast/controller/operation/operation.ts";
import { queueKind } from "@holdfast/controller/queue/queue.ts";
import { signInSourcesKind } from "@holdfast/controller/access/user/recent-sources.ts";
import { alertRuleKind, alertRuleSetKind, alertSettingsKind } from "@holdfast/controller/insight/alert/alert-rule.ts";
import { channelKind } from "@holdfast/controller/notify/channel/channel.ts";
import { createCollectionSet } from "@holdfast/controller/kernel/store/collection-set.ts";
import type { Store } from "@holdfast/controller/kernel/store/store.ts";
import { webhookKind } from "@holdfast/controller/notify/webhook/webhook.ts";
import { dnsRecordKind } from "@holdfast/controller/fleet/zone/dns-record.ts";

/** The collections of all kinds, by names for tests. */
export function createCollections(store: Store) {
  const set = createCollectionSet(store);
  const all = {
    services: set.open(managedServiceKind),
    hosts: set.open(hostKind),
    machines: set.open(machineKind),
    operations: set.open(operationKind),
    tasks: set.open(taskKind),
    databaseUsers: set.open(databaseUserKind),
    engineChanges: set.open(engineChangeKind),
    channels: set.open(channelKind),
    alertRules: set.open(alertRuleKind),
    alertRuleSets: set.open(alertRuleSetKind),
    alertSettings: set.open(alertSettingsKind),
    queues: set.open(queueKind),
    backups: set.open(backupKind),
    archives: set.open(archiveKind),
    backupKeys: set.open(backupKeyKind),
    drills: set.open(drillKind),
    records: set.open(dnsRecordKind),
    organizations: set.open(organizationKind),
    apiKeys: set.open(apiKeyKind),
    users: set.open(userKind),
    signInSources: set.open(signInSourcesKind),
    tokens: set.open(tokenKind),
    sessions: set.open(sessionKind),
    sessionCodes: set.open(sessionCodeKind),
    memberships: set.open(membershipKind),
    credentialUses: set.open(credentialUseKind),
    webhooks: set.open(webhookKind),
    nodeImages: set.open(nodeImageKind),
    rollouts: set.open(agentRolloutKind),
    rolloutRecords: set.open(rolloutRecordKind),
  };
  return { ...all, set, ready: set.ready(), untilRevision: set.untilRevision, close: set.close };
}

export type Collections = ReturnType<typeof createCollections>;
