import type { Client } from "@holdfast/sdk/client.ts";
import { NotFound } from "@holdfast/sdk/errors.ts";
import type { App, ManagedService, Pipeline, Stack } from "@holdfast/sdk/responses.ts";
import { UsageError } from "./exit-code.ts";

/** The parts of a command's context that look-ups use. */
interface Caller {
  readonly client: Client;
  readonly signal: AbortSignal;
}

/** True for an id: ids begin with a digit, names with a letter. */
export function isId(nameOrId: string): boolean {
  return /^\d/.test(nameOrId);
}

/** Codes by the noun of the object, as the API has them. */
const notFoundCodes = {
  app: "app_not_found",
  domain: "object_not_found",
  service: "service_not_found",
  "files service": "service_not_found",
  "files key": "files_key_not_found",
  stack: "stack_not_found",
  pipeline: "pipeline_not_found",
} as const;

/** The error of a name that is in no list, in the format of the API's own. */
export function notFound(kind: keyof typeof notFoundCodes, name: string): NotFound {
  const detail = `there is no ${kind} ${name}`;
  const problem = {
    type: "about:blank",
    title: detail,
    status: 404,
    detail,
    instance: "",
    code: notFoundCodes[kind],
  };
  return new NotFound({ ...problem, errors: [] });
}

/** An app by name or id. Throws NotFound. */
export async function appOf({ client, signal }: Caller, nameOrId: string): Promise<App> {
  if (isId(nameOrId)) return client.apps.get(nameOrId, { signal });
  for await (const app of client.apps.list()) if (app.name === nameOrId) return app;
  throw notFound("app", nameOrId);
}

/** A files service by name or id. Throws NotFound. */
export async function filesOf({ client, signal }: Caller, nameOrId: string): Promise<ManagedService> {
  if (isId(nameOrId)) return client.files.get(nameOrId, { signal });
  for await (const service of client.files.list({ name: nameOrId }, { signal })) return service;
  throw notFound("files service", nameOrId);
}

/** A service of any family by name or id. Throws NotFound. */
export async function monitoredOf(caller: Caller, nameOrId: string): Promise<ManagedService> {
  const { client, signal } = caller;
  if (isId(nameOrId)) return client.services.get(nameOrId, { signal }).catch(() => filesOf(caller, nameOrId));
  for await (const service of client.services.list({ name: nameOrId }, { signal })) return service;
  return filesOf(caller, nameOrId).catch(() => {
    throw notFound("service", nameOrId);
  });
}

/** A stack by name or id. Throws NotFound. */
export async function stackOf({ client, signal }: Caller, nameOrId: string): Promise<Stack> {
  if (isId(nameOrId)) return client.stacks.get(nameOrId, { signal });
  for await (const stack of client.stacks.list()) if (stack.name === nameOrId) return stack;
  throw notFound("stack", nameOrId);
}

/** A pipeline by name or id. Throws NotFound. */
export async function pipelineOf({ client, signal }: Caller, nameOrId: string): Promise<Pipeline> {
  if (isId(nameOrId)) return client.pipelines.get(nameOrId, { signal });
  for await (const pipeline of client.pipelines.list()) if (pipeline.name === nameOrId) return pipeline;
  throw notFound("pipeline", nameOrId);
}

/** The id of a node by its id, host name, or first label of the host name. */
export async function nodeIdOf({ client }: Caller, serviceId: string, node: string): Promise<string> {
  for await (const { id, hostname } of client.services.nodes(serviceId))
    if ([id, hostname, hostname.split(".")[0]].includes(node)) return id;
  return node;
}

/** Names of a service's nodes, such as orders-k3v9q2zt-1, by id. */
export async function nodeLabels({ client }: Caller, serviceId: string): Promise<ReadonlyMap<string, string>> {
  const labels = new Map<string, string>();
  for await (const { id, hostname } of client.services.nodes(serviceId)) labels.set(id, hostname.split(".")[0] ?? id);
  return labels;
}

/** Id of the organization that the credential acts in. Throws UsageError when none is chosen. */
export async function organizationOf(client: Client): Promise<string> {
  const { organization_id: id } = await client.me();
  if (id === null) throw new UsageError("name the organization: --organization, or HOLDFAST_ORGANIZATION");
  return id;
}
