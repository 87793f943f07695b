import type { CliCommand } from "../command.ts";
import type { Context } from "../context.ts";
import { given, wholeNumber } from "../flag-values.ts";

/** A list method of holdfast.admin.v1. */
export interface AdminList {
  readonly service: string;
  readonly method: string;
  /** Member of the answer that is the list. */
  readonly plural: string;
  readonly columns: readonly string[];
}

// biome-ignore format: a table, aligned so that it reads as one
const lists: readonly (AdminList & { readonly name: string; readonly description: string; readonly paged: boolean })[] = [
  { name: "machines",    description: "machines of the installation",                        service: "FleetService",        method: "ListMachines",     plural: "machines",    columns: ["id", "ownerKind", "ownerId", "state", "desired", "address", "publicAddress", "zone", "diskGb", "reason"], paged: true },
  { name: "tasks",       description: "work for machines, of the last day",                  service: "FleetService",        method: "ListTasks",        plural: "tasks",       columns: ["id", "kind", "machineId", "status", "lane", "generation", "createdAt", "error"],          paged: true },
  { name: "sessions",    description: "streams of agents",                                   service: "FleetService",        method: "ListSessions",     plural: "sessions",    columns: ["machineId", "controllerId", "connectedAt", "agentVersion"],                               paged: true },
  { name: "terms",       description: "term and primary of each service",                    service: "FleetService",        method: "ListTerms",        plural: "terms",       columns: ["serviceId", "term", "primaryNodeId"],                                                     paged: true },
  { name: "controllers", description: "running controllers",                                 service: "ControlService",      method: "ListControllers",  plural: "controllers", columns: ["id", "address", "startedAt", "shards", "sessions", "draining"],                           paged: false },
  { name: "holds",       description: "what is held back, and why"                        ,   service: "ControlService",      method: "ListHolds",        plural: "holds",       columns: ["kind", "reason", "since"],                                                                paged: false },
  { name: "audit",       description: "who did what, newest first",                          service: "OrganizationService", method: "ListAuditEntries", plural: "entries",     columns: ["time", "actor", "source", "action", "objectKind", "objectId", "result"],                  paged: true },
];

interface ListFlags {
  readonly limit?: number;
  readonly machine?: string;
  /** Id of an organization. */
  readonly of?: string;
}

export function addAdminLists(admin: CliCommand): void {
  for (const list of lists) {
    const command = admin.command(list.name).description(list.description).example(`admin ${list.name}`);
    if (list.paged) command.option("--limit <count>", "at most so many", wholeNumber, 1_000);
    if (list.name === "tasks") command.option("--machine <id>", "of one machine");
    if (list.name === "audit") command.option("--of <organization>", "of one organization");
    command.does(async (context, { limit, machine, of }: ListFlags) => {
      const request = given({ machineId: machine, organizationId: of });
      await showAdminList(context, list, request, limit);
    });
  }
}

/** Page by page up to the limit, past which it says that there is more; in one answer where there is none. */
export async function showAdminList(
  { person, output }: Context,
  { service, method, plural, columns }: AdminList,
  request: object,
  limit: number | undefined,
): Promise<void> {
  const client = await person();
  const found: object[] = [];
  let cursor: string | undefined;
  do {
    const page = limit === undefined ? {} : { page: { limit: Math.min(limit, 200), ...given({ cursor }) } };
    const answer = await client.admin<Record<string, unknown>>(service, method, { ...request, ...page });
    found.push(...((answer[plural] ?? []) as object[]));
    cursor = (answer.nextCursor as string | undefined) || undefined;
  } while (cursor !== undefined && found.length < (limit ?? Infinity));
  output.list(found.slice(0, limit), columns);
  if (limit !== undefined && (cursor !== undefined || found.length > limit))
    output.say(`These are the first ${limit}; --limit shows more.`);
}
