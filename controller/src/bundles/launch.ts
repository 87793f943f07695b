import type { AnyMessage, Call } from "@holdfast/common/call.ts";
import { actorOf } from "#access/caller.ts";
import { mutate } from "#access/mutate.ts";
import type { Quotas } from "#access/organization/quotas.ts";
import type { CompositionSystem } from "#composition/composition-system.ts";
import { compositionKind, type CompositionObject, type BundleKind, nameKindOf } from "#composition/composition.ts";
import { newComposition } from "#composition/deploy.ts";
import { deploymentKind, newDeployment } from "#composition/deployment.ts";
import type { Descriptor } from "#composition/descriptor.ts";
import { nameHolderOf, requireFreeNames } from "#composition/name-holder.ts";
import type { Kernel } from "#kernel/kernel.ts";
import { findByName, quotaOf } from "./composition-access.ts";

export interface LaunchDeps extends CompositionSystem, Pick<Kernel, "begin" | "clock" | "newId"> {
  readonly quotas: Pick<Quotas, "claim">;
}

/**
 * Creates a composition from a template, with its name, deployment record and quota, in one transaction. Throws
 * NAME_TAKEN and QUOTA_EXCEEDED.
 */
export function launch<M extends AnyMessage>(
  { compositions, deployments, kinds, seal, begin, clock, newId, quotas }: LaunchDeps,
  request: {
    readonly kind: Exclude<BundleKind, "project">;
    readonly organizationId: string;
    readonly descriptor: Descriptor;
    readonly template: { readonly name: string; readonly version: string };
    readonly monthlyCents: number;
    readonly acceptedCents?: number;
    readonly zone?: string | undefined;
  },
  message: (created: CompositionObject) => M,
  call: Call,
): Promise<M> {
  const { kind, organizationId, descriptor, template, monthlyCents, acceptedCents, zone } = request;
  const audit = { action: `${kind}.create`, kind: compositionKind.name, visibleIn: [compositions, deployments] };
  return mutate({ begin }, call, audit, async (unit) => {
    const [id, deploymentId, now] = [newId(), newId(), clock.now()];
    const { name, members } = descriptor;
    const priced = {
      template,
      monthlyCents,
      ...(acceptedCents !== undefined && { acceptedCents }),
      ...(zone !== undefined && { zone }),
    };
    const created = newComposition(
      { id, organizationId, name, kind, members, ...priced },
      { kinds, seal, deploymentId, newId, now },
    );
    unit.create(compositionKind, created);
    unit.claimName(nameKindOf(kind), organizationId, name, id);
    await quotas.claim(unit, organizationId, { ...quotaOf(kinds, members), [`${kind}s`]: 1 });
    // The commit refuses a bundle of the same name, unless this call created it through another replica.
    const object = findByName(compositions, kind, name, call)?.object;
    requireFreeNames(name, members, nameHolderOf({ kinds, compositions }, { organizationId, name, object }));
    const caller = { actor: actorOf(call), source: call.source };
    const spec = { compositionId: id, type: "launch" as const, ...caller, plan: [], toVersion: template.version };
    unit.create(deploymentKind, newDeployment(deploymentId, organizationId, spec, [], now));
    return { id, response: message(created) };
  });
}
