import { HoldfastError } from "@holdfast/common/errors.ts";
import type { NewAudit } from "#kernel/store/outbox-entry.ts";
import type { CompositionObject, Member } from "./composition.ts";
import type { DeploymentObject } from "./deployment.ts";

/** What is done to a resource for its parent, as the audit log has it: by whom the deployment was asked for. */
export function auditOf(
  { metadata, spec }: CompositionObject,
  member: Member,
  deed: "create" | "act" | "delete",
  record: DeploymentObject | undefined,
): NewAudit {
  const action = deed === "act" ? (member.change?.action.replace("_", "-") ?? "change") : deed;
  return {
    organizationId: metadata.organizationId,
    actor: record?.spec.actor ?? "platform",
    source: record?.spec.source ?? "",
    action: `${auditKindOf(member)}.${action}`,
    objectKind: auditKindOf(member),
    objectId: member.id,
    result: "ok",
    requestId: record?.metadata.id ?? metadata.id,
    detail: `${spec.face} ${metadata.name} (${metadata.id})`,
  };
}

function auditKindOf({ kind }: Member): string {
  return kind === "database" ? "managed-service" : kind;
}

/** Why a resource is refused for good; undefined for what passes by itself. */
export function refusalOf(error: unknown, member: Member): string | undefined {
  if (!(error instanceof HoldfastError)) return undefined;
  const { status } = error.entry;
  const passes = status >= 500 || status === 429 || error.key === "OPERATION_IN_PROGRESS";
  return passes ? undefined : `${member.name}: ${error.entry.title}. ${error.detail}`;
}

/** Of a composition, for logs. */
export function namesOf({ metadata, spec }: CompositionObject) {
  return { composition: metadata.id, face: spec.face, name: metadata.name };
}
