import { newMetadata } from "#kernel/store/resource.ts";
import type { ResourceKinds } from "#resource-kind/resource-kinds.ts";
import {
  afterEvent,
  type CompositionObject,
  type CompositionSealer,
  type CompositionSpec,
  type DesiredMember,
  type BundleKind,
  leavingMembers,
  type Member,
  resourceNameOf,
  stuckAfterMs,
  withStatus,
} from "./composition.ts";
import type { Observe } from "./composition-step.ts";
import { inOrder } from "./member.ts";
import { type DeployPlan, exists } from "./deploy-plan.ts";

export interface DeployContext {
  readonly kinds: ResourceKinds;
  readonly seal: CompositionSealer;
  readonly observe: Observe;
  readonly deploymentId: string;
  readonly newId: () => string;
  readonly now: number;
}

/** Creates a composition in state Pending, whose resources do not exist yet. */
export function newComposition(
  managed: {
    readonly id: string;
    readonly organizationId: string;
    readonly name: string;
    readonly kind: BundleKind;
    readonly members: readonly DesiredMember[];
  } & Pick<CompositionSpec, "monthlyCents" | "template" | "acceptedCents" | "zone">,
  context: Omit<DeployContext, "observe">,
): CompositionObject {
  const { id, organizationId, name, kind, members, ...spec } = managed;
  const { seal, deploymentId, now } = context;
  return {
    metadata: newMetadata(id, now, { name, organizationId }),
    spec: { kind, sealedDesired: seal.seal(id, members), ...spec },
    status: {
      state: "Pending",
      since: now,
      detail: null,
      hasRun: false,
      deploymentId,
      members: inOrder(members).map((desired) => newMember(id, name, desired, context)),
      deadline: now + stuckAfterMs,
      progressMark: "",
    },
  };
}

function newMember(
  id: string,
  parent: string,
  { name, kind, spec, needs, attachments }: DesiredMember,
  { seal, kinds, deploymentId, newId }: Omit<DeployContext, "observe">,
): Member {
  return {
    name,
    kind,
    id: newId(),
    resourceName: resourceNameOf(parent, name),
    needs,
    step: "planned",
    createdBy: deploymentId,
    isInDescriptor: true,
    isMarked: false,
    sealedSpec: seal.seal(id, spec),
    ...(kinds.of(kind).consumer && { attachments }),
  };
}

/**
 * The project after the request to deploy another descriptor, by its plan. `isNoop`: all resources have their desired
 * state, so the project remains Running. After a rollback all resources are created again.
 */
export function redeployed(
  current: CompositionObject,
  desiredMembers: readonly DesiredMember[],
  plan: DeployPlan,
  context: DeployContext,
): { readonly after: CompositionObject; readonly isNoop: boolean } {
  const { seal, now, deploymentId, observe } = context;
  const { id, name } = current.metadata;
  const existing = current.status.members.filter((member) => exists(member, context));
  const managed = inOrder(desiredMembers).map((desired) => {
    const member = existing.find((each) => each.name === desired.name);
    if (member === undefined) return newMember(id, name, desired, context);
    const entry = plan.entries.find((each) => each.name === desired.name);
    const updated: Member = {
      ...member,
      needs: desired.needs,
      isInDescriptor: true,
      ...(member.attachments && { attachments: desired.attachments }),
    };
    if (entry?.action !== "update") return updated;
    const keys = [...new Set(entry.changes.map(({ path }) => path.split(".")[0] ?? path))];
    const sealedTarget = seal.seal(id, desired.spec);
    return { ...updated, change: { action: "redeploy_app" as const, step: "wanted" as const, keys, sealedTarget } };
  });
  const unmanaged = existing
    .filter(({ name: each }) => !desiredMembers.some((desired) => desired.name === each))
    .map((member) => ({ ...member, isInDescriptor: false }));
  const leaving = current.status.members.filter(({ step }) => step === "leaving");
  const spec = { ...current.spec, sealedDesired: seal.seal(id, desiredMembers), monthlyCents: plan.monthlyCents };
  const isNoop =
    current.status.state === "Running" &&
    unmanaged.every(({ isMarked }) => !isMarked) &&
    managed.every(
      (member) =>
        member.step === "ready" && member.isMarked && !("change" in member) && observe(member).phase === "running",
    );
  const change = { members: [...managed, ...unmanaged, ...leaving], deploymentId, detail: null };
  if (isNoop) return { after: withStatus({ ...current, spec }, change, now), isNoop };
  const { failure: _, ...status } = current.status;
  // Consumers get the outputs of their attachments again.
  const members = change.members.map(unwired);
  const row = afterEvent({ ...current, spec, status }, "deployRequested", now, { ...change, members });
  if (row === undefined) throw new Error(`a deployment cannot start in state ${current.status.state}`);
  return { after: row.after, isNoop };
}

/** The composition in state Deleting; undefined if it is Deleting or Deleted already. */
export function deletionRequested(current: CompositionObject, now: number): CompositionObject | undefined {
  return afterEvent(current, "deleteRequested", now, { members: leavingMembers(current.status.members), detail: null })
    ?.after;
}

function unwired(member: Member): Member {
  const { wiredTo: _, ...rest } = member;
  return rest;
}
