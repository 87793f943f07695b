import { newMetadata } from "#kernel/store/resource.ts";
import type { ResourceKinds } from "#resource-kind/resource-kinds.ts";
import {
  afterEvent,
  type CompositionObject,
  type CompositionSeal,
  type CompositionSpec,
  type Face,
  leaversOf,
  type Member,
  stuckAfterMs,
  withStatus,
} from "./composition.ts";
import type { Observe } from "./composition-step.ts";
import { inOrder } from "./dependency-order.ts";
import type { DeployPlan } from "./deploy-plan.ts";
import { isThere } from "./deploy-plan.ts";
import { type DesiredMember, resourceNameOf } from "./desired-member.ts";

export interface DeployContext {
  readonly kinds: ResourceKinds;
  readonly seal: CompositionSeal;
  readonly observe: Observe;
  readonly deploymentId: string;
  readonly newId: () => string;
  readonly now: number;
}

/** A composition that is made now: nothing of it is there. */
export function newComposition(
  asked: {
    readonly id: string;
    readonly organizationId: string;
    readonly name: string;
    readonly face: Face;
    readonly members: readonly DesiredMember[];
  } & Pick<CompositionSpec, "monthlyCents" | "template" | "acceptedCents" | "zone">,
  context: Omit<DeployContext, "observe">,
): CompositionObject {
  const { id, organizationId, name, face, members, ...spec } = asked;
  const { seal, deploymentId, now } = context;
  return {
    metadata: newMetadata(id, now, { name, organizationId }),
    spec: { face, sealedDesired: seal.seal(id, members), ...spec },
    status: {
      state: "Pending",
      since: now,
      detail: null,
      hasRun: false,
      deploymentId,
      members: inOrder(members).map((desired) => newMember(id, name, desired, context)),
      deadline: now + stuckAfterMs,
      mark: "",
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
    madeBy: deploymentId,
    isManaged: true,
    isMarked: false,
    sealedSpec: seal.seal(id, spec),
    ...(kinds.of(kind).consumer && { attachments }),
  };
}

/**
 * Pure: a project that another descriptor was deployed to, by its plan. `isOver`: nothing is to be done, and it stays in its state.
 * A project that never ran, or was rolled back, begins anew with what is asked for.
 */
export function redeployed(
  current: CompositionObject,
  wanted: readonly DesiredMember[],
  plan: DeployPlan,
  context: DeployContext,
): { readonly after: CompositionObject; readonly isOver: boolean } {
  const { seal, now, deploymentId, observe } = context;
  const { id, name } = current.metadata;
  const kept = current.status.members.filter((member) => isThere(member, context));
  const asked = inOrder(wanted).map((desired) => {
    const member = kept.find((each) => each.name === desired.name);
    if (member === undefined) return newMember(id, name, desired, context);
    const entry = plan.entries.find((each) => each.name === desired.name);
    const again: Member = {
      ...member,
      needs: desired.needs,
      isManaged: true,
      ...(member.attachments && { attachments: desired.attachments }),
    };
    if (entry?.action !== "update") return again;
    const keys = [...new Set(entry.changes.map(({ path }) => path.split(".")[0] ?? path))];
    const sealedTarget = seal.seal(id, desired.spec);
    return { ...again, change: { action: "redeploy_app" as const, step: "wanted" as const, keys, sealedTarget } };
  });
  const unmanaged = kept
    .filter(({ name: each }) => !wanted.some((desired) => desired.name === each))
    .map((member) => ({ ...member, isManaged: false }));
  const leaving = current.status.members.filter(({ step }) => step === "leaving");
  const spec = { ...current.spec, sealedDesired: seal.seal(id, wanted), monthlyCents: plan.monthlyCents };
  const isOver =
    current.status.state === "Running" &&
    unmanaged.every(({ isMarked }) => !isMarked) &&
    asked.every(
      (member) =>
        member.step === "ready" && member.isMarked && !("change" in member) && observe(member).phase === "running",
    );
  const change = { members: [...asked, ...unmanaged, ...leaving], deploymentId, detail: null };
  if (isOver) return { after: withStatus({ ...current, spec }, change, now), isOver };
  const { failure: _, ...status } = current.status;
  // Consumers are told anew of what they are attached to.
  const members = change.members.map(unwired);
  const row = afterEvent({ ...current, spec, status }, "deployRequested", now, { ...change, members });
  if (row === undefined) throw new Error("whoever deploys looks at the state first");
  return { after: row.after, isOver };
}

/** Pure: on its way out, in whatever state; undefined where it is already. */
export function deletionRequested(current: CompositionObject, now: number): CompositionObject | undefined {
  return afterEvent(current, "deleteRequested", now, { members: leaversOf(current.status.members), detail: null })
    ?.after;
}

function unwired(member: Member): Member {
  const { wiredTo: _, ...rest } = member;
  return rest;
}
