import { type AdminList, showAdminList } from "../admin-list.ts";
import type { CliCommand } from "../command.ts";
import { given, wholeNumber } from "../flag-values.ts";

// biome-ignore format: a table, aligned so that it reads as one
const lists: readonly (AdminList & { readonly name: string; readonly description: string })[] = [
  { name: "machines",    description: "machines of the installation",                        service: "FleetService",        method: "ListMachines",     plural: "machines",    columns: ["id", "ownerKind", "ownerId", "state", "desired", "address", "publicAddress", "zone", "diskGb", "reason"] },
  { name: "tasks",       description: "work for machines, of the last day",                  service: "FleetService",        method: "ListTasks",        plural: "tasks",       columns: ["id", "kind", "machineId", "status", "lane", "generation", "createdAt", "error"]                          },
  { name: "sessions",    description: "streams of agents",                                   service: "FleetService",        method: "ListSessions",     plural: "sessions",    columns: ["machineId", "controllerId", "connectedAt", "agentVersion"]                                               },
  { name: "terms",       description: "term and primary of each service",                    service: "FleetService",        method: "ListTerms",        plural: "terms",       columns: ["serviceId", "term", "primaryNodeId"]                                                                     },
  { name: "rights",      description: "which primary may take writes until when",            service: "FleetService",        method: "ListRights",       plural: "rights",      columns: ["serviceId", "machineId", "term", "controllerId", "revoked", "until", "engineSilent"]                     },
  { name: "controllers", description: "running controllers",                                 service: "ControlService",      method: "ListControllers",  plural: "controllers", columns: ["id", "address", "startedAt", "shards", "sessions", "draining"]                                           },
  { name: "holds",       description: "what is held back, and why",                          service: "ControlService",      method: "ListHolds",        plural: "holds",       columns: ["kind", "reason", "since"]                                                                                },
  { name: "stores",      description: "how full etcd and the history are",                   service: "ControlService",      method: "ListStores",       plural: "stores",      columns: ["name", "state", "usedPercent", "usedBytes", "fileBytes", "quotaBytes", "reason"]                         },
  { name: "audit",       description: "who did what, newest first",                          service: "OrganizationService", method: "ListAuditEntries", plural: "entries",     columns: ["time", "actor", "source", "action", "objectKind", "objectId", "result"]                                  },
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
    command.option("--limit <count>", "at most so many", wholeNumber, 1_000);
    if (list.name === "tasks") command.option("--machine <id>", "of one machine");
    if (list.name === "audit") command.option("--of <organization>", "of one organization");
    command.does((context, { limit, machine, of }: ListFlags) =>
      showAdminList(context, list, given({ machineId: machine, organizationId: of }), limit),
    );
  }
}
