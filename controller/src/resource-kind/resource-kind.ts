import { isDeepStrictEqual } from "node:util";
import type { FieldFault } from "@holdfast/common/errors.ts";
import { lookUp } from "@holdfast/common/look-up.ts";
import { contributionPoint } from "#kernel/contribution-point.ts";
import type { Watch } from "#kernel/store/store.ts";
import type { Changes } from "#kernel/store/unit-of-work.ts";
import type { Attached, Outputs } from "./outputs.ts";

/** The spec of a resource: plain JSON, by the schema of its kind. */
export type ResourceSpec = Readonly<Record<string, unknown>>;

/** Monthly cost of one resource. */
export interface CostLine {
  readonly description: string;
  /** Integer cents. */
  readonly cents: number;
  /** True if the cost depends on use, and `cents` is its maximum. */
  readonly isCeiling: boolean;
}

/** A difference at one path, such as `plan_name` or `env.KEY`. */
export interface SpecChange {
  readonly path: string;
  /** Value before the change; undefined if the member was absent. `after` is undefined if it was removed. */
  readonly before: unknown;
  readonly after: unknown;
  /** True if responses must not contain the values. */
  readonly isSecret?: true;
}

/** Effect of a changed spec on its resource. */
export type Difference =
  | { readonly change: "unchanged" }
  | { readonly change: "inPlace"; readonly action: InPlaceAction; readonly changes: readonly SpecChange[] }
  /** The change is stored, but the resource does not change. */
  | { readonly change: "recorded"; readonly changes: readonly SpecChange[] };

/** Changes in place (spec 3, Upgrade plan). */
export type InPlaceAction = "redeploy_app" | "scale_app" | "scale_service";

/** A resource to create, with the values that are fixed at its creation. */
export interface NewResource {
  readonly id: string;
  readonly name: string;
  readonly organizationId: string;
  readonly spec: ResourceSpec;
  readonly owner: Parent;
  /** The resources that are attached to it, which run; absent unless its kind has `consumer.attach`. */
  readonly attached?: readonly AttachedResource[];
}

/** A resource that is attached to a consumer of the same bundle. */
export interface AttachedResource {
  /** Name of its kind. */
  readonly kind: string;
  readonly id: string;
  /** Prefix of the consumer's variables. */
  readonly prefix: string;
}

/** The parent of a resource. */
export interface Parent {
  readonly kind: string;
  readonly id: string;
}

/** A creation that is part of an uncommitted unit of work. */
export interface PendingCreation {
  /** Releases reserved resources. Call it if the transaction was not committed. */
  release(): void;
}

export type Phase = "absent" | "creating" | "running" | "changing" | "failed" | "deleting";

export interface ResourceObservation {
  readonly phase: Phase;
  readonly healthy: boolean;
  /** Reason why the resource is not running or not healthy; null otherwise. */
  readonly detail: string | null;
  /** Reason why the last change of a resource that runs was not applied, a sentence; absent without one. */
  readonly changeFailure?: string;
  readonly progressPct: number;
  /** Observed values of the spec's members. */
  readonly actual: ResourceSpec;
  /** Changes whenever the outputs may differ, such as after a password reset. */
  readonly outputsVersion: string;
}

/** Observation of a resource that does not exist. */
export const absent: ResourceObservation = {
  phase: "absent",
  healthy: false,
  detail: "The resource does not exist.",
  progressPct: 0,
  actual: {},
  outputsVersion: "",
};

/** Another resource whose outputs a consumer gets. */
export interface Attachment {
  /** Logical name of the attached resource. */
  readonly name: string;
  /** Prefix of its variables; absent: derived from the name. */
  readonly prefix?: string;
}

/** Facet of kinds whose resources consume the outputs of other resources. */
export interface ConsumerFacet {
  attachmentsOf(spec: ResourceSpec): readonly Attachment[];
  /** Names of the variables that users set. */
  variablesOf(spec: ResourceSpec): readonly string[];
  /**
   * Applies the attachments in the caller's unit of work; idempotent. Variables are derived by `environmentOf`. Absent
   * for a kind with `attach`.
   */
  wire?(unit: Changes, id: string, attached: readonly Attached[], signal: AbortSignal): Promise<void>;
  /**
   * Makes exactly these resources the consumer's attachments, in the caller's unit of work; idempotent. For a kind that
   * gives its consumers their credentials itself. `create` has the attachments too: a consumer starts with them.
   */
  attach?(unit: Changes, id: string, attached: readonly AttachedResource[], signal: AbortSignal): Promise<void>;
}

/** A consumer, as the kinds see it whose resources it is attached to. */
export interface AttachedConsumer {
  readonly id: string;
  /** Logical name. */
  readonly name: string;
}

/**
 * Facet of kinds whose consumers each get separate credentials, which end with the attachment. Both functions add
 * to the caller's unit of work and are idempotent.
 */
export interface CredentialsFacet {
  /** The outputs for the consumer, with its credentials; undefined before the resource exists. */
  attach(unit: Changes, id: string, consumer: AttachedConsumer, signal: AbortSignal): Promise<Outputs | undefined>;
  /** Ends the credentials of the consumer; false if there are none. */
  detach(unit: Changes, id: string, consumerId: string, signal: AbortSignal): Promise<boolean>;
}

/** A reason why a resource must not be removed, with the remedy. */
export interface Protection {
  readonly error: "DELETION_PROTECTED" | "ATTACHMENT_IN_USE";
  readonly detail: string;
}

/**
 * How bundles create, change and delete resources of one kind. `create`, `act`, `mark` and `remove` add to the caller's
 * unit of work, so that the action and its record are one transaction, and may be called again after a crash.
 */
export interface ResourceKind {
  readonly kind: string;
  /** Other names of the kind in descriptors, each with the members of the spec that the name implies. */
  readonly aliases: Readonly<Record<string, ResourceSpec>>;
  /** JSON Schema 2020-12 of the spec as users write it; `implied` are the members that an alias sets. */
  schema(implied: ResourceSpec): Readonly<Record<string, unknown>>;
  /** Fills in defaults, and renames aliases of members. */
  normalize(spec: ResourceSpec): ResourceSpec;
  /** Errors of a normalized spec that the schema does not find. Field paths are relative to the spec. */
  faults(spec: ResourceSpec): readonly FieldFault[];
  /** Reason why the resource cannot be created here; undefined if it can. */
  unavailable(spec: ResourceSpec): string | undefined;
  monthlyCost(spec: ResourceSpec): readonly CostLine[];
  /** Members of the spec, such as the engine, that a descriptor cannot change. */
  readonly identity?: readonly string[];
  /**
   * The spec with changes that users made to the resource directly, such as a larger disk; undefined if there are none.
   */
  followed?(spec: ResourceSpec, actual: ResourceSpec): ResourceSpec | undefined;
  /**
   * The resource with this name in the organization, with a label such as `service 019a...`; undefined if there is
   * none.
   */
  nameHolder?(organizationId: string, name: string): { readonly id: string; readonly text: string } | undefined;
  /** The effect of a changed spec. Both specs are normalized. */
  diff(before: ResourceSpec, after: ResourceSpec): Difference;
  /** Amounts of the organization's quotas that a resource with the spec uses. */
  quotaOf(spec: ResourceSpec): Readonly<Record<string, number>>;
  /** Scopes that a caller needs to create or change a resource. */
  readonly scopes: readonly string[];
  create(unit: Changes, resource: NewResource, signal: AbortSignal): Promise<PendingCreation>;
  /** Starts a change in place; absent for a kind without such changes. */
  act?(unit: Changes, id: string, action: InPlaceAction, target: ResourceSpec, signal: AbortSignal): Promise<void>;
  /** Stores the owner of the resource; undefined: the organization. */
  mark(unit: Changes, id: string, owner: Parent | undefined, signal: AbortSignal): Promise<void>;
  /** The reason why the resource must not be removed, such as deletion protection; undefined if it may be removed. */
  protectedBy(id: string): Protection | undefined;
  /** Requests the removal; `isOrderly` is false if the resource never ran. Returns false if nothing was written. */
  remove(unit: Changes, id: string, options: { readonly isOrderly: boolean }, signal: AbortSignal): Promise<boolean>;
  /**
   * State of the resource. `isCurrent`: read from the store, not from memory. `absent` is always confirmed by the
   * store.
   */
  observe(id: string, signal: AbortSignal, options?: { readonly isCurrent: boolean }): Promise<ResourceObservation>;
  /** A string that changes whenever an observation may differ. Reads only memory. */
  version(id: string): string;
  /** Calls back with ids of resources that may have changed. */
  subscribe(onChange: (id: string) => void): Watch;
  /**
   * Connection data, including secrets; undefined before the resource exists, and for a kind with `credentials`, which
   * has none without a consumer.
   */
  outputs(id: string, signal: AbortSignal): Promise<Outputs | undefined>;
  /** The port of the resource, for kinds whose users choose it. */
  portOf?(spec: ResourceSpec): number | undefined;
  readonly consumer?: ConsumerFacet;
  readonly credentials?: CredentialsFacet;
}

/**
 * A kind that a system contributes. It is created when the bundles' system opens, from parts of the contributing
 * system.
 */
export interface ContributedKind {
  /** Name of the kind. */
  readonly kind: string;
  create(): ResourceKind;
}

export const resourceKinds = contributionPoint<ContributedKind>("resource kinds", { key: ({ kind }) => kind });

/** Differences of two specs, sorted by path. Members of objects have separate paths, such as `env.KEY`. */
export function specChanges(before: ResourceSpec, after: ResourceSpec, prefix = ""): readonly SpecChange[] {
  const names = [...new Set([...Object.keys(before), ...Object.keys(after)])].toSorted();
  return names.flatMap((name): readonly SpecChange[] => {
    const [old, now] = [lookUp(before, name), lookUp(after, name)];
    if (isDeepStrictEqual(old, now)) return [];
    const path = `${prefix}${name}`;
    if (isPlain(old) && isPlain(now)) return specChanges(old, now, `${path}.`);
    return [{ path, before: old, after: now }];
  });
}

function isPlain(value: unknown): value is ResourceSpec {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
