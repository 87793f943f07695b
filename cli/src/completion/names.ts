import type { Client } from "@holdfast/sdk/client.ts";
import { adminList } from "../admin-list.ts";
import { take } from "../flag-values.ts";
import { organizationOf } from "../lookup.ts";

/** A candidate word with a short description. */
export interface Suggestion {
  readonly value: string;
  readonly about: string;
}

/** Sources of names. */
export interface Names {
  readonly client: Client;
  profiles(): readonly string[];
}

type Source = (names: Names, operands: readonly string[]) => Promise<Suggestion[]>;

const maxSuggestions = 200;
const allHosts = { service: "HostService", method: "ListHosts", plural: "hosts" };

function fromCatalog(pick: (catalog: Awaited<ReturnType<Client["catalog"]>>) => Suggestion[]): Source {
  return async ({ client }) => pick(await client.catalog());
}

async function suggest<T>(items: AsyncIterable<T>, name: (item: T) => string, about: (item: T) => string) {
  return (await take(items, maxSuggestions)).map((item) => ({ value: name(item), about: about(item) }));
}

const services: Source = ({ client }) =>
  suggest(
    client.services.list(),
    ({ name }) => name,
    ({ status, database_type: type }) => `${type}, ${status}`,
  );

/** Sources of candidates by the name of an argument or flag: `service` for `<service>` and `--service`. */
const sources: ReadonlyMap<string, Source> = new Map(
  Object.entries<Source>({
    service: services,
    files: ({ client }) =>
      suggest(
        client.files.list(),
        ({ name }) => name,
        ({ status }) => status,
      ),
    app: ({ client }) =>
      suggest(
        client.apps.list(),
        ({ name }) => name,
        ({ status }) => status,
      ),
    user: async ({ client }, [service = ""]) =>
      suggest(
        client.databaseUsers.list(await idOf(client, service)),
        ({ username }) => username,
        ({ role }) => role,
      ),
    node: async ({ client }, [service = ""]) =>
      suggest(
        client.services.nodes(await idOf(client, service)),
        ({ hostname }) => hostname,
        ({ role, status }) => `${role}, ${status}`,
      ),
    database: async ({ client }, [service = ""]) =>
      suggest(
        client.databases.list(await idOf(client, service)),
        ({ name }) => name,
        ({ owner }) => owner,
      ),
    changes: async ({ client }, [service = ""]) =>
      Object.entries((await client.configuration.get(await idOf(client, service))).parameters).map(
        ([name, { value }]) => ({
          value: name,
          about: value,
        }),
      ),
    key: ({ client }) =>
      suggest(
        client.apiKeys.list(),
        ({ id }) => id,
        ({ name }) => name,
      ),
    inferenceKey: async ({ client }) =>
      suggest(
        client.inference.keys(await organizationOf(client)),
        ({ id }) => id,
        ({ name }) => name,
      ),
    provider: async ({ client }) =>
      (await client.inference.providers(await organizationOf(client))).map(({ provider, enabled }) => ({
        value: provider,
        about: enabled ? "enabled" : "disabled",
      })),
    token: ({ client }) =>
      suggest(
        client.tokens.list(),
        ({ id }) => id,
        ({ scopes }) => scopes.join(" "),
      ),
    channel: ({ client }) =>
      suggest(
        client.channels.list(),
        ({ id }) => id,
        ({ name }) => name,
      ),
    rule: async ({ client }, [service = ""]) =>
      suggest(
        client.alerts.rules(await idOf(client, service)),
        ({ id }) => id,
        ({ name }) => name,
      ),
    webhook: ({ client }) =>
      suggest(
        client.webhooks.list(),
        ({ id }) => id,
        ({ url }) => url,
      ),
    delivery: async ({ client }, [webhook = ""]) =>
      (await client.webhooks.deliveries(webhook)).map((delivery) => ({
        value: delivery.id,
        about: `${delivery.event_type} ${delivery.response_status ?? "no response"}`,
      })),
    organization: ({ client }) =>
      suggest(
        client.organizations.list(),
        ({ id }) => id,
        ({ name }) => name,
      ),
    member: async ({ client }) =>
      suggest(
        client.members.list(await organizationOf(client)),
        ({ user_id: id }) => id,
        ({ role }) => role,
      ),
    // Hosts are visible to operators only; others get an error and no candidates.
    host: ({ client }) =>
      suggest(
        adminList<{ id: string; zone: string; state: string }>(client, allHosts),
        ({ id }) => id,
        ({ zone, state }) => `${zone}, ${state}`,
      ),
    scope: async ({ client }) => (await client.me()).scopes.map((value) => ({ value, about: "" })),
    project: ({ client }) =>
      suggest(
        client.projects.list(),
        ({ name }) => name,
        ({ status }) => status,
      ),
    stack: ({ client }) =>
      suggest(
        client.stacks.list(),
        ({ name }) => name,
        ({ status }) => status,
      ),
    pipeline: ({ client }) =>
      suggest(
        client.pipelines.list(),
        ({ name }) => name,
        ({ status }) => status,
      ),
    profile: async ({ profiles }) => profiles().map((value) => ({ value, about: "" })),
    type: fromCatalog(({ engines }) => engines.map(({ database_type: value, title }) => ({ value, about: title }))),
    metric: fromCatalog(({ metrics }) =>
      metrics.filter(({ source }) => source !== null).map(({ name: value, meaning: about }) => ({ value, about })),
    ),
    plan: fromCatalog(({ plans }) =>
      plans.map(({ plan_name: value, vcpu, memory_gb: memory }) => ({ value, about: `${vcpu} vCPU, ${memory} GB` })),
    ),
    zone: fromCatalog(({ zones }) => zones.map(({ zone: value, title }) => ({ value, about: title }))),
    storageTier: fromCatalog(({ storage_tiers: tiers }) =>
      tiers.map(({ storage_tier: value, medium }) => ({ value, about: medium })),
    ),
    engineVersion: fromCatalog(({ engines }) =>
      engines.flatMap(({ versions, title }) => versions.map(({ version: value }) => ({ value, about: title }))),
    ),
  }),
);

/** Candidates for an argument or flag; none for one without a source. */
export async function suggestNames(
  kind: string,
  operands: readonly string[],
  open: () => Promise<Names>,
): Promise<Suggestion[]> {
  const source = sources.get(kind);
  return source === undefined ? [] : source(await open(), operands);
}

async function idOf(client: Client, name: string): Promise<string> {
  for await (const service of client.services.list({ name })) return service.id;
  return name;
}
