import { type AdminList, showAdminList } from "../admin-list.ts";
import type { CliCommand } from "../command.ts";
import { omitUndefined, integer } from "../flag-values.ts";

interface ListCommand extends AdminList {
  readonly name: string;
  readonly description: string;
  /** Former name of the command, which still works. */
  readonly alias?: string;
}

// biome-ignore format: a table, aligned so that it reads as one
const lists: readonly ListCommand[] = [
  { name: "machines",    description: "list the machines of the installation",                        service: "FleetService",        method: "ListMachines",     plural: "machines",    columns: ["id", "owner", "ownerKind", "ownerId", "state", "desired", "address", "publicAddress", "zone", "diskGb", "reason"] },
  { name: "tasks",       description: "list tasks for machines, of the last day",                 service: "FleetService",        method: "ListTasks",        plural: "tasks",       columns: ["id", "kind", "machineId", "status", "lane", "generation", "createdAt", "error"]                          },
  { name: "sessions",    description: "list sessions of agents with controllers",                 service: "FleetService",        method: "ListSessions",     plural: "sessions",    columns: ["machineId", "controllerId", "connectedAt", "agentVersion"]                                               },
  { name: "terms",       description: "list term and primary of each service",                    service: "FleetService",        method: "ListTerms",        plural: "terms",       columns: ["serviceId", "term", "primaryNodeId"]                                                                     },
  { name: "leases",      description: "list primary leases: which primary may write until when",  service: "FleetService",        method: "ListPrimaryLeases", plural: "leases",     columns: ["serviceId", "machineId", "term", "controllerId", "revoked", "expiresAt", "engineUnresponsive"], alias: "rights" },
  { name: "controllers", description: "list running controllers",                                 service: "ControlService",      method: "ListControllers",  plural: "controllers", columns: ["id", "address", "startedAt", "shards", "sessions", "draining"]                                           },
  { name: "pauses",      description: "list paused automation, with the reasons",                  service: "ControlService",      method: "ListHolds",        plural: "holds",       columns: ["kind", "reason", "since"], alias: "holds"                                                                },
  { name: "stores",      description: "show the storage use of etcd and the history database",        service: "ControlService",      method: "ListStores",       plural: "stores",      columns: ["name", "state", "usedPercent", "usedBytes", "fileBytes", "quotaBytes", "reason"]                         },
  { name: "audit",       description: "show the audit log, newest first",                             service: "OrganizationService", method: "ListAuditEntries", plural: "entries",     columns: ["time", "actor", "source", "action", "objectKind", "objectId", "result"]                                  },
];

interface ListFlags {
  readonly limit: number;
  readonly machine?: string;
  /** Id of an organization. */
  readonly of?: string;
}

export function addAdminLists(admin: CliCommand): void {
  for (const list of lists) {
    const command = admin.command(list.name).description(list.description).example(`admin ${list.name}`);
    command.option("--limit <count>", "maximum number of entries", integer, 1_000);
    if (list.alias !== undefined) command.alias(list.alias);
    if (list.name === "tasks") command.option("--machine <id>", "only tasks for this machine");
    if (list.name === "audit") command.option("--of <organization>", "only entries of this organization");
    command.does((context, { limit, machine, of }: ListFlags) =>
      showAdminList(context, list, omitUndefined({ machineId: machine, organizationId: of }), limit),
    );
  }
}
