import { createHash } from "node:crypto";
import { next } from "@holdfast/common/machine.ts";
import type { Sealer } from "#kernel/secrets/sealer.ts";
import { defineKind } from "#kernel/store/kind.ts";
import { keyOf, type Resource } from "#kernel/store/resource.ts";
import type { InPlaceAction, Attachment, ResourceSpec } from "#resource-kind/resource-kind.ts";
import {
  type CompositionEffect,
  type CompositionEvent,
  compositionLifecycle,
  type CompositionState,
} from "./composition-lifecycle.ts";

/** A composition: its desired members, and the members that exist. */
export type CompositionObject = Resource<CompositionSpec, CompositionStatus>;

/** The kind of a bundle in the API. */
export type BundleKind = "project" | "stack" | "pipeline";

export const compositionKind = defineKind<CompositionObject>("composition", {
  deletedWithOrganization: true,
  storedNames: {
    "spec.kind": "face",
    "status.progressMark": "mark",
    "status.members.*.createdBy": "madeBy",
    "status.members.*.isInDescriptor": "isManaged",
  },
  indexes: [kindAndName],
  quotas: (["project", "stack", "pipeline"] as const).map((kind) => ({
    name: `${kind}s`,
    label: `${kind}s`,
    limit: 100,
    limitMax: 10_000,
    amountOf: ({ spec, status }) => (spec.kind === kind && status.state !== "Deleted" ? 1 : 0),
  })),
});

/** Index: compositions of one name, kind and organization, at most one of which is not Deleted. */
export function kindAndName({ metadata, spec }: CompositionObject): string {
  return nameKey(spec.kind, metadata.organizationId, metadata.name);
}

export function nameKey(kind: BundleKind, organizationId: string, name: string): string {
  return `${kind}/${organizationId}/${name}`;
}

/** The name of the kind under which names of bundles are claimed. */
export function nameKindOf(kind: BundleKind): { readonly name: string } {
  return { name: kind };
}

export interface CompositionSpec {
  readonly kind: BundleKind;
  /** The desired members, sealed. */
  readonly sealedDesired: string;
  readonly monthlyCents: number;
  /** The template; absent for a project. */
  readonly template?: { readonly name: string; readonly version: string };
  /** Monthly price that was accepted at the last launch or upgrade; absent for kinds that need no acceptance. */
  readonly acceptedCents?: number;
  readonly zone?: string;
}

export interface CompositionStatus {
  readonly state: CompositionState;
  readonly since: number;
  readonly detail: string | null;
  /** True if it has been Running: a later failure is not rolled back. */
  readonly hasRun: boolean;
  /**
   * Id of the newest record of a deployment, launch or migration, which is in progress in every state except Running,
   * Failed and Deleted.
   */
  readonly deploymentId: string;
  readonly members: readonly Member[];
  /** True if a user requested to abort the deployment. */
  readonly isAborted?: true;
  /** The failure of the deployment, during its rollback. */
  readonly failure?: Failure;
  /** The spec after the upgrade in progress; absent without an upgrade. */
  readonly upgrade?: Pick<CompositionSpec, "sealedDesired" | "monthlyCents" | "acceptedCents" | "template">;
  /** Time at which a deployment without progress fails, in milliseconds since 1970; null if none is in progress. */
  readonly deadline: number | null;
  /** A summary of all members' progress, such as `db:made::creating:40`; a different text counts as progress. */
  readonly progressMark: string;
  /** Health of a pipeline at the last announcement; absent before the first one, and for other kinds. */
  readonly announcedHealthy?: boolean;
}

export interface Failure {
  readonly cause: "failed" | "aborted";
  readonly reason: string;
}

/** One resource of a composition. Its id is chosen before it is created, so that it is never created twice. */
export interface Member {
  readonly name: string;
  readonly kind: string;
  readonly id: string;
  /** Name of the resource, unique in its kind, such as `shop-db`. */
  readonly resourceName: string;
  /** Names of the members on which it depends: they run before it is created, and are removed after it. */
  readonly needs: readonly string[];
  /** `planned`: not created; `made`: created, never ran; `ready`: ran; `leaving`: being removed. */
  readonly step: "planned" | "made" | "ready" | "leaving";
  /** Id of the deployment record that created it. */
  readonly createdBy: string;
  /** False if the newest descriptor does not contain the member. */
  readonly isInDescriptor: boolean;
  /** True if the resource is marked as managed by the composition. */
  readonly isMarked: boolean;
  /** The applied spec, sealed. */
  readonly sealedSpec: string;
  readonly change?: MemberChange;
  /** The members whose outputs a consumer gets; absent for other kinds. */
  readonly attachments?: readonly Attachment[];
  /**
   * Versions of the last passed outputs, in the order of attachments, separated by spaces; absent until outputs were
   * passed in this deployment.
   */
  readonly wiredTo?: string;
}

/**
 * A change in place of a member. `wanted`: not begun; `begun`: requested from the resource; `failed`: the previous spec
 * has to be requested; `undoing`: it was requested.
 */
export interface MemberChange {
  readonly action: InPlaceAction;
  readonly step: "wanted" | "begun" | "failed" | "undoing";
  /** Keys of the spec that differ. */
  readonly keys: readonly string[];
  readonly sealedTarget: string;
  /** Reason for which it is undone. */
  readonly error?: string;
}

/** Time without progress after which a deployment fails (spec 1, Limits). */
export const stuckAfterMs = 10 * 60_000;

/** Seals and opens the specs of compositions. */
export interface CompositionSealer {
  seal(id: string, spec: unknown): string;
  spec(id: string, sealed: string): ResourceSpec;
  desired(composition: CompositionObject): readonly DesiredMember[];
}

export function createCompositionSealer(sealer: Pick<Sealer, "seal" | "open">): CompositionSealer {
  const open = (id: string, sealed: string) => JSON.parse(sealer.open(sealed, keyOf(compositionKind, id)));
  return {
    seal: (id, spec) => sealer.seal(JSON.stringify(spec), keyOf(compositionKind, id)),
    spec: open,
    desired: ({ metadata, spec }) => open(metadata.id, spec.sealedDesired),
  };
}

/** The composition after an event, and the effect; undefined if the event does not apply in the current state. */
export function afterEvent(
  composition: CompositionObject,
  event: CompositionEvent,
  now: number,
  change: Partial<CompositionStatus> = {},
): { readonly after: CompositionObject; readonly effect: CompositionEffect } | undefined {
  const { metadata, status } = composition;
  const row = next(compositionLifecycle, status.state, event);
  if (row === undefined) return undefined;
  const isEnd = row[2] === "Running" || row[2] === "Failed" || row[2] === "Deleted";
  const isDeletion = row[2] === "Deleting";
  const { isAborted, ...rest } = status;
  // An abort request concerns one deployment and is removed at its end.
  const remaining = isEnd || isDeletion || isAborted !== true ? rest : status;
  return {
    after: {
      ...composition,
      metadata: { ...metadata, updatedAt: now, ...(isDeletion && { deletionRequestedAt: now }) },
      status: {
        ...remaining,
        state: row[2],
        since: now,
        deadline: isEnd || isDeletion ? null : now + stuckAfterMs,
        progressMark: "",
        ...change,
      },
    },
    effect: row[3],
  };
}

/** The composition with a changed status in the same state. */
export function withStatus(
  composition: CompositionObject,
  change: Partial<CompositionStatus>,
  now: number,
): CompositionObject {
  const { metadata, status } = composition;
  return { ...composition, metadata: { ...metadata, updatedAt: now }, status: { ...status, ...change } };
}

/** The composition with one member changed; undefined removes the member. */
export function withMember(
  composition: CompositionObject,
  id: string,
  change: Partial<Member> | undefined,
  now: number,
): CompositionObject {
  const members = composition.status.members.flatMap((member) => {
    if (member.id !== id) return [member];
    return change === undefined ? [] : [{ ...member, ...change }];
  });
  return withStatus(composition, { members }, now);
}

/** The member without a change in place. */
export function unchanged(member: Member): Member {
  const { change: _, ...rest } = member;
  return rest;
}

/** All members in step `leaving`, without members that were never created. */
export function leavingMembers(members: readonly Member[]): readonly Member[] {
  return members.flatMap((member): Member[] =>
    member.step === "planned" ? [] : [{ ...unchanged(member), step: "leaving" }],
  );
}

/** One desired resource, with a normalized spec and all its dependencies. */
export interface DesiredMember {
  readonly name: string;
  readonly kind: string;
  /** The kind as written in the descriptor, such as `postgres`. */
  readonly writtenKind: string;
  readonly spec: ResourceSpec;
  /** Names of the dependencies, declared or implied by attachments, sorted. */
  readonly needs: readonly string[];
  readonly attachments: readonly Attachment[];
}

const nameMax = 40;

/**
 * Name of a resource, unique in its kind: `<parent>-<name>`, at most 40 characters. A longer name is truncated and ends
 * with a part of its hash. So does a name whose parent has a hyphen, because `ca` with `b-c` differs from `ca-b` with
 * `c`.
 */
export function resourceNameOf(parent: string, name: string): string {
  const fullName = `${parent}-${name}`;
  if (fullName.length <= nameMax && !fullName.endsWith("-") && !parent.includes("-")) return fullName;
  const hash = createHash("sha256").update(`${parent}/${name}`).digest("hex").slice(0, 8);
  return `${fullName.slice(0, nameMax - hash.length - 1)}-${hash}`;
}
