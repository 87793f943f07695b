import type { AgentRollout } from "./agent-rollout/agent-rollout.ts";
import type { ApiKey, CredentialUse, Token, User } from "./access/credential/credential.ts";
import type { Membership } from "./access/organization/membership.ts";
import type { Organization } from "./access/organization/organization.ts";
import type { DatabaseUserObject } from "./database-user/database-user.ts";
import type { EngineChangeObject } from "./engine-change/engine-change.ts";
import type { TaskObject } from "./fleet/task/task-object.ts";
import type { HostObject } from "./host/host.ts";
import { type MachineObject, parseMachine } from "./machine/machine.ts";
import { type ManagedServiceObject, parseManagedService } from "./managed-service/managed-service.ts";
import type { BrakeRecord } from "./maintenance/brake-record.ts";
import type { NodeImageObject } from "./maintenance/node-image.ts";
import type { OperationObject } from "./operation/operation.ts";
import { createCollection } from "./store/collection.ts";
import type { Store } from "./store/store.ts";
import type { WebhookObject } from "./webhook/webhook.ts";
import type { DnsRecordObject } from "./zone/dns-record.ts";

/** Every kind of object, kept current in memory. */
export function createCollections(store: Store) {
  const all = {
    services: createCollection<ManagedServiceObject>(store, "managed-service", parseManagedService),
    hosts: createCollection<HostObject>(store, "host"),
    machines: createCollection<MachineObject>(store, "machine", parseMachine),
    operations: createCollection<OperationObject>(store, "operation"),
    tasks: createCollection<TaskObject>(store, "task"),
    databaseUsers: createCollection<DatabaseUserObject>(store, "database-user"),
    engineChanges: createCollection<EngineChangeObject>(store, "engine-change"),
    records: createCollection<DnsRecordObject>(store, "dns-record"),
    organizations: createCollection<Organization>(store, "organization"),
    apiKeys: createCollection<ApiKey>(store, "api-key"),
    users: createCollection<User>(store, "user"),
    tokens: createCollection<Token>(store, "token"),
    memberships: createCollection<Membership>(store, "membership"),
    credentialUses: createCollection<CredentialUse>(store, "credential-use"),
    webhooks: createCollection<WebhookObject>(store, "webhook"),
    nodeImages: createCollection<NodeImageObject>(store, "node-image"),
    rollouts: createCollection<AgentRollout>(store, "agent-rollout"),
    brakeRecords: createCollection<BrakeRecord>(store, "maintenance-brake"),
  };
  const each = Object.values(all);
  return {
    ...all,
    ready: Promise.all(each.map(({ ready }) => ready)),
    /** Resolves when all of them show this revision. */
    async reached(revision: bigint, timeoutMs: number): Promise<void> {
      await Promise.all(each.map((collection) => collection.reached(revision, timeoutMs)));
    },
    close(): void {
      for (const collection of each) collection.close();
    },
  };
}

export type Collections = ReturnType<typeof createCollections>;
