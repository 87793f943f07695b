import type { ServedService } from "@holdfast/common/call.ts";
import type { Clock } from "@holdfast/common/clock.ts";
import { type AgentRolloutApiDeps, createAgentRolloutApi } from "./agent-rollout/agent-rollout-api.ts";
import type { Access } from "./access/create-access.ts";
import type { Cursors } from "./page/cursor.ts";
import { auditRefusals } from "./access/refusal-audit.ts";
import { createAuditLog } from "./admin/audit-log.ts";
import { type ControlApiDeps, createControlApi } from "./admin/control-api.ts";
import { createAuthorityApi } from "./admin/authority-api.ts";
import { createFleetApi } from "./admin/fleet-api.ts";
import { createHostApi, type HostApiDeps } from "./admin/host-api.ts";
import { createMaintenanceApi as createMaintenanceAdminApi } from "./admin/maintenance-api.ts";
import { createOperatorApi } from "./admin/operator-api.ts";
import { createOrganizationApi } from "./admin/organization-api.ts";
import type { CatalogData } from "./catalog/catalog.ts";
import { createCatalogApi } from "./catalog/catalog-api.ts";
import type { EngineOffer } from "./catalog/engine-offer.ts";
import type { Collections } from "./collections.ts";
import { createEngineChanges } from "./engine-change/engine-changes.ts";
import { createConfigurationApi } from "./configuration/configuration-api.ts";
import { createDatabaseApi } from "./database/database-api.ts";
import type { EgressClient } from "./egress/egress-client.ts";
import { createEventApi } from "./event/event-api.ts";
import { createDatabaseUserApi } from "./database/database-user-api.ts";
import type { RunningFleet } from "./fleet/running-fleet.ts";
import type { History } from "./history/history.ts";
import type { OrphanSweep } from "./machine/orphan-sweep.ts";
import type { WaitingMachines } from "./waiting-machine/waiting-machines.ts";
import { createEngineTasks, engineTimeoutMs } from "./managed-service/engine-task.ts";
import { createMaintenanceApi } from "./maintenance/maintenance-api.ts";
import { pendingSummaries } from "./maintenance/pending-summaries.ts";
import { createManagedServiceApi } from "./managed-service/managed-service-api.ts";
import { createServiceAccess } from "./managed-service/service-access.ts";
import { createServiceLogs } from "./managed-service/service-logs.ts";
import { createMetricApi } from "./metric/metric-api.ts";
import { createOperationApi } from "./operation/operation-api.ts";
import type { Outbox } from "./outbox/outbox.ts";
import type { AuthorityFollowers } from "./pki/authority-rotation-reconciler.ts";
import type { InstallationAuthority } from "./pki/create-authority.ts";
import type { Sealer } from "./secrets/sealer.ts";
import type { UnitOfWork } from "./store/unit-of-work.ts";
import { createWebhookApi } from "./webhook/webhook-api.ts";

export interface ServicesDeps {
  readonly access: Pick<Access, "services" | "quotas" | "setUps">;
  readonly begin: () => UnitOfWork;
  readonly collections: Collections;
  readonly fleet: RunningFleet;
  readonly history: History;
  readonly outbox: Outbox;
  readonly egress: EgressClient;
  readonly orphans: OrphanSweep;
  readonly authority: InstallationAuthority;
  readonly followers: AuthorityFollowers;
  readonly waiting: WaitingMachines;
  readonly hostTrust: HostApiDeps["hostTrust"];
  readonly overcommit: HostApiDeps["overcommit"];
  readonly offerOwn: AgentRolloutApiDeps["offerOwn"];
  readonly control: Pick<ControlApiDeps, "members" | "drain" | "snapshot" | "holds">;
  readonly catalog: CatalogData;
  readonly engines: () => readonly EngineOffer[];
  readonly maintenanceHeld: () => boolean;
  readonly defaultAllowedCidrs: readonly string[];
  readonly domain: string;
  readonly sealer: Sealer;
  readonly cursors: Cursors;
  readonly clock: Clock;
  readonly newId: () => string;
}

/** Every service of the API with its implementation, over REST and gRPC alike. */
export function createServices(deps: ServicesDeps): ServedService[] {
  const { collections, fleet, history, outbox } = deps;
  const { services, operations, organizations, apiKeys, machines, tasks, databaseUsers: users } = collections;
  const { quotas, setUps } = deps.access;
  const access = createServiceAccess({ services, operations });
  const engineTasks = createEngineTasks({ fleet });
  const changes = createEngineChanges({
    ...deps,
    changes: collections.engineChanges,
    operations,
    users,
    access,
    patienceMs: engineTimeoutMs,
  });
  const logs = createServiceLogs({ fleet, cursors: deps.cursors });
  const trustBundle = () => deps.authority.trustBundle;
  const auditNow = outbox.auditNow;
  const sessions = () => fleet.sessions();
  const maintenance = { nodeImages: collections.nodeImages, machines, hosts: collections.hosts };
  const auditLog = createAuditLog({ history, cursors: deps.cursors });
  return [
    createCatalogApi(deps),
    createManagedServiceApi({
      ...deps,
      services,
      operations,
      organizations,
      quotas,
      access,
      logs,
      trustBundle,
      pendingOf: (service) => pendingSummaries(service, { ...deps, ...maintenance }),
    }),
    createMaintenanceApi({ ...deps, ...maintenance, services, operations, access }),
    createHostApi({ ...deps, hosts: collections.hosts, machines }),
    createMaintenanceAdminApi({ ...deps, ...maintenance, services, operations }),
    createOperationApi({ ...deps, operations, access }),
    createDatabaseUserApi({ ...deps, users, access, tasks: engineTasks, changes, auditNow }),
    createDatabaseApi({ ...deps, access, tasks: engineTasks, changes }),
    createConfigurationApi({ ...deps, services, operations, access, patienceMs: engineTimeoutMs }),
    createEventApi({ ...deps, access }),
    createMetricApi({ ...deps, access }),
    createWebhookApi({
      ...deps,
      organizations,
      webhooks: collections.webhooks,
      quotas,
      deliveries: history.deliveries,
    }),
    createFleetApi({ ...deps, machines, tasks, services, sessions, probeTransfer: fleet.probeTransfer }),
    createControlApi({ ...deps, ...deps.control, sessions }),
    createAuthorityApi(deps),
    createAgentRolloutApi({ ...deps, machines, rollouts: collections.rollouts }),
    createOrganizationApi({ ...deps, organizations, apiKeys, quotas, auditLog }),
    createOperatorApi({ ...deps, users: collections.users, memberships: collections.memberships, setUps }),
    ...deps.access.services,
  ].map((served) => auditRefusals(served, outbox.auditSoon));
}
