import type { AnyMessage, Call } from "@holdfast/common/call.ts";
import { HoldfastError } from "@holdfast/common/errors.ts";
import type { CompositionSystem } from "#composition/composition-system.ts";
import { compositionKind, type CompositionObject } from "#composition/composition.ts";
import { deletionRequested } from "#composition/deploy.ts";
import { deploymentKind, isEnded } from "#composition/deployment.ts";
import { protectedMember } from "#composition/member.ts";
import type { Kernel } from "#kernel/kernel.ts";
import type { Stored } from "#kernel/store/resource.ts";
import { mutate } from "#access/mutate.ts";
import { requireKindScopes } from "./composition-access.ts";

/**
 * Starts the deletion of a composition and all its resources, in any state; a deployment in progress is aborted. Throws
 * SCOPE_MISSING without the scopes of the resources, and DELETION_PROTECTED or ATTACHMENT_IN_USE for a resource, which
 * the error names.
 */
export async function deleteComposition<M extends AnyMessage>(
  { compositions, deployments, kinds, begin, clock }: CompositionSystem & Pick<Kernel, "begin" | "clock">,
  find: () => Stored<CompositionObject>,
  message: (composition: CompositionObject) => Promise<M>,
  call: Call,
): Promise<M> {
  const { spec, status } = find().object;
  const { kind } = spec;
  requireKindScopes(kinds, status.members, call);
  const mutation = { action: `${kind}.delete`, kind: compositionKind.name, visibleIn: [compositions, deployments] };
  return mutate({ begin }, call, mutation, async (unit) => {
    const composition = find();
    const { object } = composition;
    const blocker = protectedMember(object, kinds);
    const now = clock.now();
    const after = deletionRequested(object, now);
    // The deletion was requested before.
    if (after === undefined) return { unchanged: await message(object) };
    if (blocker !== undefined)
      throw new HoldfastError(blocker.protection.error, `${blocker.name}: ${blocker.protection.detail}`, {
        members: { resource: blocker.name },
      });
    const response = await message(after);
    unit.update(compositionKind, composition, after);
    const record = await deployments.getCurrent(object.status.deploymentId, call.signal);
    if (record !== undefined && !isEnded(record.object)) {
      const status = {
        ...record.object.status,
        state: "Aborted" as const,
        error: "The bundle was deleted.",
        finishedAt: now,
      };
      unit.update(deploymentKind, record, { ...record.object, status });
    }
    return { id: object.metadata.id, response };
  });
}
