import { HoldfastError } from "@holdfast/common/errors.ts";
import { DepGraph, DepGraphCycleError } from "dependency-graph";
import type { NewAudit } from "#kernel/store/outbox-entry.ts";
import type { Changes } from "#kernel/store/unit-of-work.ts";
import type { Attached, Outputs } from "#resource-kind/outputs.ts";
import type { AttachedResource, Phase, Protection } from "#resource-kind/resource-kind.ts";
import type { ResourceKinds } from "#resource-kind/resource-kinds.ts";
import { prefixOf } from "#services/resource-kind/environment-of.ts";
import type { CompositionObject, Member } from "./composition.ts";
import type { Observed } from "./composition-step.ts";
import type { DeploymentObject } from "./deployment.ts";

// biome-ignore format: a table, aligned so that it reads as one
const words: Record<Phase, string> = {
  absent:   "Deleted",
  creating: "Provisioning",
  running:  "Running",
  changing: "Updating",
  failed:   "Failed",
  deleting: "Deleting",
};

/** The status of a member's resource in responses about the bundle. */
export function statusOfMember(
  member: Member,
  observed: Observed,
): { readonly word: string; readonly detail: string | null } {
  if (member.step === "planned") return { word: "Pending", detail: null };
  if (member.step === "leaving") return { word: observed.phase === "absent" ? "Deleted" : "Deleting", detail: null };
  const { phase, healthy, detail } = observed;
  return { word: words[phase], detail: healthy ? null : detail };
}

/** The first member that must not be deleted; undefined if there is none. */
export function protectedMember(
  { status }: CompositionObject,
  kinds: ResourceKinds,
): { readonly name: string; readonly protection: Protection } | undefined {
  for (const { name, kind, id, step } of status.members) {
    const protection = step === "planned" || step === "leaving" ? undefined : kinds.of(kind).protectedBy(id);
    if (protection !== undefined) return { name, protection };
  }
  return undefined;
}

/** The resources that are attached to a consumer. Throws NOT_POSSIBLE if one is unavailable. */
export function attachedResources({ status }: CompositionObject, consumer: Member): readonly AttachedResource[] {
  return (consumer.attachments ?? []).map(({ name, prefix }) => {
    const member = status.members.find((each) => each.name === name && each.step === "ready");
    if (member === undefined) throw new HoldfastError("NOT_POSSIBLE", `${name} is not available.`);
    return { kind: member.kind, id: member.id, prefix: prefix ?? prefixOf(name) };
  });
}

/**
 * The outputs that a consumer gets, in the order of its attachments; adds its credentials to the unit of work, and ends
 * those of former attachments. Throws NOT_POSSIBLE if an attached resource is unavailable.
 */
export async function attachedTo(
  { status }: CompositionObject,
  consumer: Member,
  kinds: ResourceKinds,
  unit: Changes,
  signal: AbortSignal,
): Promise<readonly Attached[]> {
  const attached: Attached[] = [];
  /** Outputs by id: a resource may be attached twice, under two prefixes. */
  const known = new Map<string, Outputs>();
  for (const { name, prefix } of consumer.attachments ?? []) {
    const member = status.members.find((each) => each.name === name && each.step === "ready");
    const kind = member && kinds.of(member.kind);
    const outputs =
      member &&
      (known.get(member.id) ??
        (await (kind?.credentials
          ? kind.credentials.attach(unit, member.id, { id: consumer.id, name: consumer.name }, signal)
          : kind?.outputs(member.id, signal))));
    if (member === undefined || outputs === undefined)
      throw new HoldfastError("NOT_POSSIBLE", `${name} is not available.`);
    known.set(member.id, outputs);
    attached.push({ prefix: prefix ?? prefixOf(name), outputs });
  }
  await detachFrom(
    status.members.filter(({ id }) => !known.has(id)),
    consumer.id,
    kinds,
    unit,
    signal,
  );
  return attached;
}

/** Ends the credentials that the consumer has for any of the members. */
export async function detachFrom(
  members: readonly Member[],
  consumerId: string,
  kinds: ResourceKinds,
  unit: Changes,
  signal: AbortSignal,
): Promise<void> {
  for (const { id, kind, step } of members)
    if (step !== "planned") await kinds.of(kind).credentials?.detach(unit, id, consumerId, signal);
}

/** The audit entry of a resource's change, with the caller of the deployment as its actor. */
export function auditOf(
  { metadata, spec }: CompositionObject,
  member: Member,
  change: "create" | "act" | "delete",
  record: DeploymentObject | undefined,
): NewAudit {
  const action = change === "act" ? (member.change?.action.replace("_", "-") ?? "change") : change;
  return {
    organizationId: metadata.organizationId,
    actor: record?.spec.actor ?? "platform",
    source: record?.spec.source ?? "",
    action: `${auditKindOf(member)}.${action}`,
    objectKind: auditKindOf(member),
    objectId: member.id,
    result: "ok",
    requestId: record?.metadata.id ?? metadata.id,
    detail: `${spec.kind} ${metadata.name} (${metadata.id})`,
  };
}

function auditKindOf({ kind }: Member): string {
  return kind === "database" || kind === "files" ? "managed-service" : kind;
}

/** The reason of a permanent refusal; undefined for temporary errors. */
export function refusalOf(error: unknown, member: Member): string | undefined {
  if (!(error instanceof HoldfastError)) return undefined;
  const { status } = error.entry;
  const passes = status >= 500 || status === 429 || error.key === "OPERATION_IN_PROGRESS";
  return passes ? undefined : `${member.name}: ${error.entry.title}. ${error.detail}`;
}

/** Fields of a composition for log messages. */
export function namesOf({ metadata, spec }: CompositionObject) {
  return { composition: metadata.id, kind: spec.kind, name: metadata.name };
}

/** An element of a dependency graph: its name and the names that it depends on. */
export interface Dependent {
  readonly name: string;
  readonly needs: readonly string[];
}

/** The path of a cycle, such as `[a, b, a]`; undefined if there is none. Unknown names are ignored. */
export function cycleOf(all: readonly Dependent[]): readonly string[] | undefined {
  try {
    graphOf(all).overallOrder();
    return undefined;
  } catch (error) {
    if (error instanceof DepGraphCycleError) return error.cyclePath;
    throw error;
  }
}

/** The elements in topological order. Throws for a cycle. */
export function inOrder<T extends Dependent>(all: readonly T[]): readonly T[] {
  const order = graphOf(all).overallOrder();
  const index = new Map(order.map((name, at) => [name, at]));
  return all.toSorted((a, b) => (index.get(a.name) ?? 0) - (index.get(b.name) ?? 0));
}

function graphOf(all: readonly Dependent[]): DepGraph<Dependent> {
  const graph = new DepGraph<Dependent>();
  for (const each of all) graph.addNode(each.name, each);
  for (const { name, needs } of all)
    for (const needed of needs) if (graph.hasNode(needed)) graph.addDependency(name, needed);
  return graph;
}
