import type { Call, ResourceName } from "@holdfast/common/call.ts";
import type { FieldFault } from "@holdfast/common/errors.ts";
import { contributionPoint } from "#kernel/contribution-point.ts";
import type { Collection } from "#kernel/store/collection.ts";
import type { Resource } from "#kernel/store/resource.ts";
import { mayTouch, organizationOf } from "../caller.ts";

type LimitFault = Omit<FieldFault, "pointer">;

/** A kind of object that a token can be limited to. Its RPCs check each object by `mayTouch`. */
export interface TokenResourceKind {
  /** Name of the kind. */
  readonly kind: string;
  /** Scopes that a limited token can have, such as `services` for `services:read` and `services:write`. */
  readonly scope: string;
  readonly objects: Pick<Collection<Resource<unknown, unknown>>, "get" | "untilRevision">;
}

export const tokenResources = contributionPoint<TokenResourceKind>("resources of tokens", { key: ({ kind }) => kind });

/**
 * The faults of a new token's limits. A token that is limited to objects gets scopes of their kinds only: RPCs of other
 * scopes do not check the limits.
 */
export function limitFaults(
  kinds: readonly TokenResourceKind[],
  { resources, scopes }: { readonly resources: readonly ResourceName[]; readonly scopes: readonly string[] },
  call: Call,
): readonly LimitFault[] {
  if (resources.length === 0) return [];
  const named = kinds.filter(({ kind }) => resources.some((resource) => resource.kind === kind));
  return [
    ...resources.flatMap((resource, index) => faultsOf(kinds, resource, index, call)),
    ...scopes.flatMap((scope, index) =>
      named.some((each) => scope.startsWith(`${each.scope}:`))
        ? []
        : [{ field: `scopes[${index}]`, code: "not_limitable", detail: "cannot be limited to resources" }],
    ),
  ];
}

function faultsOf(
  kinds: readonly TokenResourceKind[],
  { kind, id }: ResourceName,
  index: number,
  call: Call,
): readonly LimitFault[] {
  const found = kinds.find((each) => each.kind === kind);
  if (found === undefined) {
    const detail = `must be one of ${kinds.map((each) => each.kind).join(", ")}`;
    return [{ field: `resources[${index}].kind`, code: "unknown", detail }];
  }
  const isOfOrganization = found.objects.get(id)?.object.metadata.organizationId === organizationOf(call);
  if (isOfOrganization && mayTouch(call, kind, id)) return [];
  return [{ field: `resources[${index}].id`, code: "unknown", detail: "is not an object of the organization" }];
}
