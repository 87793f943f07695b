import type { AnyMessage, Call } from "@holdfast/common/call.ts";
import { actorOf, auditOf, commitAndSee } from "#access/caller.ts";
import type { Quotas } from "#access/organization/quotas.ts";
import type { CompositionSystem } from "#composition/composition-system.ts";
import { compositionKind, type CompositionObject, type Face, nameKindOf } from "#composition/composition.ts";
import { newComposition } from "#composition/deploy.ts";
import { deploymentKind, newDeployment } from "#composition/deployment.ts";
import type { Descriptor } from "#composition/descriptor.ts";
import type { Kernel } from "#kernel/kernel.ts";
import { quotaOf } from "./composition-access.ts";

export interface LaunchDeps extends CompositionSystem, Pick<Kernel, "begin" | "clock" | "newId"> {
  readonly quotas: Pick<Quotas, "claim">;
}

/**
 * Writes down a composition that a template describes, with its name, its price and its share of quotas, in one transaction.
 * Throws NAME_TAKEN and QUOTA_EXCEEDED.
 */
export async function launch<M extends AnyMessage>(
  { compositions, deployments, kinds, seal, begin, clock, newId, quotas }: LaunchDeps,
  asked: {
    readonly face: Exclude<Face, "project">;
    readonly organizationId: string;
    readonly descriptor: Descriptor;
    readonly template: { readonly name: string; readonly version: string };
    readonly monthlyCents: number;
    readonly acceptedCents?: number;
    readonly zone?: string | undefined;
  },
  message: (made: CompositionObject) => M,
  call: Call,
): Promise<M> {
  const { face, organizationId, descriptor, template, monthlyCents, acceptedCents, zone } = asked;
  const [id, deploymentId, now] = [newId(), newId(), clock.now()];
  const { name, members } = descriptor;
  const priced = {
    template,
    monthlyCents,
    ...(acceptedCents !== undefined && { acceptedCents }),
    ...(zone !== undefined && { zone }),
  };
  const made = newComposition(
    { id, organizationId, name, face, members, ...priced },
    { kinds, seal, deploymentId, newId, now },
  );
  const unit = begin();
  unit.create(compositionKind, made);
  unit.claimName(nameKindOf(face), organizationId, name, id);
  await quotas.claim(unit, organizationId, { ...quotaOf(kinds, members), [`${face}s`]: 1 });
  const who = { actor: actorOf(call), source: call.source };
  const spec = { compositionId: id, type: "launch" as const, ...who, plan: [], toVersion: template.version };
  unit.create(deploymentKind, newDeployment(deploymentId, organizationId, spec, [], now));
  unit.audit(auditOf(call, `${face}.create`, compositionKind.name, id));
  const answer = message(made);
  unit.answer(call, answer);
  await commitAndSee(call, unit, [compositions, deployments]);
  return answer;
}
