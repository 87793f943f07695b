import { EngineRefused } from "../engine-errors.ts";
import { platform } from "./layout.ts";
import { type Api, createAcls, deleteAcls, describeAcls } from "./protocol/apis.ts";
import type { Connection } from "./protocol/connection.ts";
import { requireSuccess } from "./protocol/protocol-error.ts";

type RequestOf<A> = A extends Api<infer Request, unknown> ? Request : never;
export type AclBinding = RequestOf<typeof createAcls>["acls"][number];

/** Codes of the protocol (org.apache.kafka.common.resource.ResourceType, .acl.AclOperation and so on). */
export const resource = { any: 1, topic: 2, group: 3, cluster: 4, transactionalId: 5 } as const;
export const pattern = { any: 1, literal: 3, prefixed: 4 } as const;
export const permission = { any: 1, deny: 2, allow: 3 } as const;
// biome-ignore format: a table
export const operation = {
  any: 1, all: 2, read: 3, write: 4, create: 5, delete: 6, alter: 7, describe: 8, describeConfigs: 10, idempotentWrite: 12,
} as const;

type ResourceName = Exclude<keyof typeof resource, "any">;
type OperationName = Exclude<keyof typeof operation, "any">;

/**
 * Rights of each role. Nobody alters the cluster, users, ACLs, quotas or the placement of partitions, all of which need
 * `alter` or `all` of the cluster.
 */
const rights: ReadonlyMap<string, readonly (readonly [of: ResourceName, operations: readonly OperationName[]])[]> =
  new Map([
    [
      "admin",
      [
        ["topic", ["all"]],
        ["group", ["all"]],
        ["transactionalId", ["all"]],
        ["cluster", ["describe", "describeConfigs", "idempotentWrite"]],
      ],
    ],
    [
      "readwrite",
      [
        ["topic", ["read", "write", "describe", "describeConfigs"]],
        ["group", ["read", "describe"]],
        ["transactionalId", ["write", "describe"]],
        ["cluster", ["idempotentWrite"]],
      ],
    ],
    [
      "readonly",
      [
        ["topic", ["read", "describe", "describeConfigs"]],
        ["group", ["read", "describe"]],
      ],
    ],
  ]);

const anyHost = "*";
const everyone = "User:*";
const clusterName = "kafka-cluster";

export const principalOfUser = (username: string): string => `User:${username}`;

/** ACLs that give a user exactly this role. Throws EngineRefused for an unknown role. */
export function aclsOf(username: string, role: string): AclBinding[] {
  const granted = rights.get(role);
  if (granted === undefined) throw new EngineRefused(`${role} is no role: admin, readwrite or readonly`);
  return granted.flatMap(([kind, operations]) =>
    operations.map((name) => ({
      resourceType: resource[kind],
      resourceName: kind === "cluster" ? clusterName : "*",
      patternType: pattern.literal,
      principal: principalOfUser(username),
      host: anyHost,
      operation: operation[name],
      permission: permission.allow,
    })),
  );
}

/** Role of a user with exactly these ACLs; `custom` if there is none. */
export function roleOfAcls(username: string, acls: readonly AclBinding[]): string {
  const found = keysOf(acls);
  return [...rights.keys()].find((role) => keysOf(aclsOf(username, role)) === found) ?? "custom";
}

function keysOf(acls: readonly AclBinding[]): string {
  return acls.map(keyOfAcl).toSorted().join();
}

/** Text that two ACLs share only if they are equal. */
export function keyOfAcl({
  resourceType,
  resourceName,
  patternType,
  operation: of,
  permission: is,
}: AclBinding): string {
  return [resourceType, resourceName, patternType, of, is].join(" ");
}

function denied(resourceType: number, resourceName: string, patternType: number, of: number): AclBinding {
  return {
    resourceType,
    resourceName,
    patternType,
    principal: everyone,
    host: anyHost,
    operation: of,
    permission: permission.deny,
  };
}

/** Topics of the engine and of the platform: users cannot read, write, see or create them. */
export const reservedNames: readonly AclBinding[] = [
  denied(resource.topic, "__", pattern.prefixed, operation.all),
  ...[resource.topic, resource.group, resource.transactionalId].map((type) =>
    denied(type, platform, pattern.prefixed, operation.all),
  ),
];

/** While the disk is nearly full: users read and delete, but do not write. */
export const blockedWrites: readonly AclBinding[] = [operation.write, operation.create].map((of) =>
  denied(resource.topic, "*", pattern.literal, of),
);

/** All ACLs of a principal, or of all principals. */
export async function listAcls(session: Connection, principal: string | null): Promise<AclBinding[]> {
  const answer = await session.call(describeAcls, {
    resourceType: resource.any,
    resourceName: null,
    patternType: pattern.any,
    principal,
    host: null,
    operation: operation.any,
    permission: permission.any,
  });
  requireSuccess("DescribeAcls", answer);
  return answer.resources.flatMap(({ resourceType, resourceName, patternType, acls }) =>
    acls.map((acl) => ({ resourceType, resourceName, patternType, ...acl })),
  );
}

export async function addAcls(session: Connection, acls: readonly AclBinding[]): Promise<void> {
  if (acls.length === 0) return;
  const { results } = await session.call(createAcls, { acls });
  for (const result of results) requireSuccess("CreateAcls", result);
}

export async function removeAcls(session: Connection, acls: readonly AclBinding[]): Promise<void> {
  if (acls.length === 0) return;
  const { results } = await session.call(deleteAcls, { filters: acls });
  for (const result of results) requireSuccess("DeleteAcls", result);
}
