import type { AclBinding } from "./access.ts";
import { operation, pattern, permission, resource } from "./access.ts";
import { createAcls, deleteAcls, describeAcls } from "./protocol/apis.ts";
import type { Connection } from "./protocol/connection.ts";
import { requireSuccess } from "./protocol/protocol-error.ts";

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
