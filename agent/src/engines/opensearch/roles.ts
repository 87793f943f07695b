import { platform, securityIndex } from "./layout.ts";

/** Roles of users, as the platform names them. */
export const roleNames = ["admin", "readwrite", "readonly"] as const;
export type RoleName = (typeof roleNames)[number];

/** A role of the security plugin. */
export interface RoleDefinition {
  readonly cluster_permissions: readonly string[];
  readonly index_permissions: readonly {
    readonly index_patterns: readonly string[];
    readonly allowed_actions: readonly string[];
  }[];
}

/** The plugin's name of a role, which is also the backend role that maps to it. */
export const engineRole = (role: string): string => `${platform}_${role}`;

/**
 * All indices but those of the platform and of the security plugin: a regular expression of Java between slashes. A
 * request that resolves to one of those as well, such as a deletion of `*`, is refused.
 */
const userIndices = `/(?!\\.${platform}|${securityIndex.replace(".", "\\.")}).*/`;

/** Calls that span indices; what they do to each index is a right of the index. */
const spanning = [
  "indices:data/read/mget*",
  "indices:data/read/msearch*",
  "indices:data/read/mtv*",
  "indices:data/read/scroll*",
  "indices:data/read/search/template*",
  "indices:data/read/point_in_time/*",
];
/** Calls of models, by the plugin that operators may add. Its connectors to other servers are no right of users. */
const models = "cluster:admin/opensearch/ml";
const usesModels = [`${models}/predict`, `${models}/models/get`, `${models}/models/search`];
const managesModels = [
  ...usesModels,
  `${models}/register_model*`,
  `${models}/upload_model_chunk`,
  `${models}/deploy_model*`,
  `${models}/undeploy_model*`,
  `${models}/models/*`,
  `${models}/model_groups/*`,
  `${models}/tasks/*`,
];
/** Runs a script on a document of the request, which it stores in no index; searches may run scripts, too. */
const tryScript = "cluster:admin/scripts/painless/execute";
/** State and figures of the cluster, which every role reads. */
const watching = ["cluster:monitor/*", "indices:admin/aliases/get", ...spanning, ...usesModels, tryScript];
const definitions = [
  "cluster:admin/ingest/*",
  "cluster:admin/search/pipeline/*",
  "cluster:admin/script/*",
  "cluster:admin/component_template/*",
  "indices:admin/index_template/*",
  "indices:admin/template/*",
  "indices:admin/data_stream/*",
];
const writing = ["indices:data/write/bulk", "indices:data/write/reindex", "indices:admin/aliases*"];
const reading = ["indices:data/read/*", "indices:monitor/*", "indices:admin/*/get*", "indices:admin/resolve/*"];
const readMetadata = [
  "indices:admin/get",
  "indices:admin/exists",
  "indices:admin/validate/query",
  "indices:admin/analyze",
  "indices:admin/shards/search_shards",
];

/**
 * Calls that reach no contents, also those that name no index: the plugin takes them for calls about all indices, and
 * would refuse them.
 */
const withoutContents = [
  "indices:monitor/recovery",
  "indices:monitor/segments",
  "indices:monitor/shard_stores",
  "indices:monitor/segment_replication",
  "indices:monitor/data_stream/stats",
  "indices:admin/data_stream/get",
  "indices:admin/analyze",
  "indices:data/read/point_in_time/readall",
];
/** Calls that make documents found by searches, and write logs of shards to disk; they reach no contents. */
const flushing = ["indices:admin/refresh*", "indices:admin/flush*"];
/** Ends the points in time of all users. */
const endAllPointsInTime = "indices:data/read/point_in_time/delete";
const clearCaches = "indices:admin/cache/clear*";

function role(
  cluster: readonly string[],
  indices: readonly string[],
  ofAll: readonly string[] = withoutContents,
): RoleDefinition {
  return {
    cluster_permissions: [...cluster],
    index_permissions: [
      { index_patterns: [userIndices], allowed_actions: [...indices] },
      { index_patterns: ["*"], allowed_actions: [...ofAll] },
    ],
  };
}

/**
 * The roles by name. None of them reaches users, settings of the cluster, snapshots, the routing of shards or system
 * indices. While writes are blocked, roles that write may only read and delete.
 */
export function rolesFor({ writesBlocked }: { readonly writesBlocked: boolean }): Record<RoleName, RoleDefinition> {
  const readers = [...reading, ...readMetadata];
  const deletes = ["indices:data/write/delete*", ...flushing];
  const ofAllWriters = [...withoutContents, ...flushing];
  const ofAll = [...ofAllWriters, endAllPointsInTime, clearCaches];
  const freeing = [...readers, ...deletes, "indices:data/write/bulk*", "indices:admin/delete"];
  return {
    admin: writesBlocked
      ? role([...watching, "indices:data/write/bulk"], freeing, ofAll)
      : role([...watching, ...managesModels, ...definitions, ...writing], ["indices_all"], ofAll),
    readwrite: writesBlocked
      ? role(
          [...watching, "indices:data/write/bulk"],
          [...readers, ...deletes, "indices:data/write/bulk*"],
          ofAllWriters,
        )
      : role(
          [...watching, "indices:data/write/bulk", "indices:data/write/reindex"],
          [
            ...readers,
            "indices:data/write/*",
            "indices:admin/create",
            "indices:admin/auto_create",
            "indices:admin/mapping/auto_put",
            "indices:admin/mapping/put",
            ...flushing,
          ],
          ofAllWriters,
        ),
    readonly: role(watching, readers),
  };
}

/** Role of a user by its backend roles; `custom` for any but the platform's. */
export function roleOf(backendRoles: readonly string[]): string {
  const found = roleNames.find((name) => backendRoles.length === 1 && backendRoles[0] === engineRole(name));
  return found ?? "custom";
}

/** Contents of the security index of a new cluster, by the name of their file: JSON is YAML. */
export function firstSecurity(): Readonly<Record<string, object>> {
  const file = (type: string, entries: object = {}) => ({ _meta: { type, config_version: 2 }, ...entries });
  const basic = {
    http_enabled: true,
    transport_enabled: false,
    order: 0,
    http_authenticator: { type: "basic", challenge: true },
    authentication_backend: { type: "internal" },
  };
  const roles = rolesFor({ writesBlocked: false });
  const dynamic = {
    // A search of all indices finds those that the user may read.
    do_not_fail_on_forbidden: true,
    // `do_not_fail_on_forbidden_empty` would open points in time of all indices to a user who may read none.
    http: { anonymous_auth_enabled: false, xff: { enabled: false } },
    kibana: { multitenancy_enabled: false },
    authc: { basic },
    authz: {},
  };
  return {
    config: file("config", { config: { dynamic } }),
    internal_users: file("internalusers"),
    roles: file(
      "roles",
      Object.fromEntries(roleNames.map((name) => [engineRole(name), { reserved: true, ...roles[name] }])),
    ),
    roles_mapping: file(
      "rolesmapping",
      Object.fromEntries(
        roleNames.map((name) => [engineRole(name), { reserved: true, backend_roles: [engineRole(name)] }]),
      ),
    ),
    action_groups: file("actiongroups"),
    tenants: file("tenants"),
    nodes_dn: file("nodesdn"),
    allowlist: file("allowlist", { config: { enabled: false } }),
  };
}
