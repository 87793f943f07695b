import type { Clock } from "@holdfast/common/clock.ts";
import type { Log } from "@holdfast/common/log.ts";
import type { WorkTimes } from "#kernel/metrics/process-metrics.ts";
import { again, type ReconcileOutcome, settled } from "#kernel/runtime/reconciler.ts";
import type { ControlLoop } from "#kernel/runtime/runner.ts";
import type { Collection } from "#kernel/store/collection.ts";
import type { Stored } from "#kernel/store/resource.ts";
import type { UnitOfWork } from "#kernel/store/unit-of-work.ts";
import type { PendingCreation } from "#resource-kind/resource-kind.ts";
import type { ResourceKinds } from "#resource-kind/resource-kinds.ts";
import { compositionKind, type CompositionObject, type CompositionSealer, nameKindOf } from "./composition.ts";
import { compositionEvent } from "./composition-events.ts";
import { afterFailure, planComposition } from "./composition-plan.ts";
import type { CompositionStep, Observe } from "./composition-step.ts";
import { deploymentKind, type DeploymentObject } from "./deployment.ts";
import { afterChange } from "./deployment-progress.ts";
import type { Observer } from "./observer.ts";
import { attachedResources, attachedTo, auditOf, detachFrom, namesOf, refusalOf } from "./member.ts";
import { endUpgrade } from "./upgrade-plan.ts";

export interface CompositionWorkDeps {
  readonly compositions: Collection<CompositionObject>;
  readonly deployments: Collection<DeploymentObject>;
  readonly kinds: ResourceKinds;
  readonly seal: CompositionSealer;
  readonly observer: Observer;
  readonly begin: () => UnitOfWork;
  /** Runs creations of one organization one after the other. */
  readonly runExclusive: <T>(organizationId: string, work: () => Promise<T>) => Promise<T>;
  readonly clock: Clock;
  readonly log: Log;
  /** Durations of deployments by type and outcome. */
  readonly durations: WorkTimes;
}

type Step<K extends CompositionStep["kind"]> = Extract<CompositionStep, { kind: K }>;

/** Maximum number of steps per run; afterwards the work queue serves other compositions. */
const stepsMax = 32;
const retryMs = 15_000;
/** Upper limit of the lag of collections behind the store. */
const recheckMs = 500;
const day = 86_400_000;

/**
 * Brings each composition to its desired state: each run observes the members, computes the next step
 * (`planComposition`), and performs it in one transaction with the new status. Key: id of the composition.
 */
export function createCompositionWork(deps: CompositionWorkDeps): ControlLoop {
  const { compositions, deployments, kinds, seal, observer, begin, clock, log, durations } = deps;

  async function reconcile(id: string, signal: AbortSignal): Promise<ReconcileOutcome> {
    for (let taken = 0; taken < stepsMax; taken += 1) {
      const composition = await compositions.getCurrent(id, signal);
      if (composition === undefined) return settled;
      const observe = await observer.observe(composition.object, signal);
      const step = planComposition(composition.object, observe, clock.now());
      if (step.kind === "wait")
        return step.forMs === undefined ? settled : again(Math.min(step.forMs, day), "a resource changes");
      const isDone = await perform(composition, step, observe, signal);
      if (!isDone)
        return again(step.kind === "remove" ? recheckMs : retryMs, "a resource changed since it was observed");
    }
    return again(0, "more steps");
  }

  /** Performs the step; false if it has to be retried later. */
  async function perform(
    composition: Stored<CompositionObject>,
    step: Exclude<CompositionStep, { kind: "wait" }>,
    observe: Observe,
    signal: AbortSignal,
  ): Promise<boolean> {
    switch (step.kind) {
      case "record":
        await note(composition, step, observe, signal);
        return true;
      case "forget":
        await forget(composition, signal);
        return true;
      case "remove":
        return remove(composition, step, signal);
      case "create":
      case "act":
      case "undo":
      case "mark":
      case "wire":
        return change(composition, step, observe, signal);
    }
  }

  async function note(
    composition: Stored<CompositionObject>,
    step: Step<"record">,
    observe: Observe,
    signal: AbortSignal,
  ): Promise<void> {
    const unit = begin();
    unit.update(compositionKind, composition, step.after);
    const record = await recordOf(composition.object, signal);
    const after = record && afterChange(record.object, composition.object, step, observe, clock.now());
    if (record !== undefined && after !== undefined && after !== record.object)
      unit.update(deploymentKind, record, after);
    const event = compositionEvent(step.effect, step.after);
    if (event !== undefined) unit.event(event);
    if (step.effect === "announceDeleted") {
      const { metadata, spec } = composition.object;
      unit.releaseName(nameKindOf(spec.kind), metadata.organizationId, metadata.name);
    }
    await untilVisible(await unit.commit(signal));
    const end = after?.status.finishedAt ?? null;
    if (after !== undefined && end !== null && after !== record?.object)
      durations.observe(after.spec.type, after.status.state.toLowerCase(), (end - after.metadata.createdAt) / 1_000);
    const [from, to] = [composition.object.status.state, step.after.status.state];
    if (from !== to)
      log.info("composition state changed", {
        ...namesOf(composition.object),
        from,
        to,
        reason: step.after.status.detail,
      });
  }

  async function recordOf({ status }: CompositionObject, signal: AbortSignal) {
    return deployments.get(status.deploymentId) ?? deployments.getCurrent(status.deploymentId, signal);
  }

  /** Changes a resource and the composition's status in one transaction. */
  async function change(
    composition: Stored<CompositionObject>,
    step: Step<"create" | "act" | "mark" | "wire"> | Step<"undo">,
    observe: Observe,
    signal: AbortSignal,
  ): Promise<boolean> {
    const unit = begin();
    unit.update(compositionKind, composition, step.after);
    const { organizationId } = composition.object.metadata;
    const work = async () => {
      const put = await addTo(unit, composition.object, step, signal);
      try {
        return await unit.commit(signal);
      } catch (error) {
        put?.release();
        throw error;
      }
    };
    try {
      await untilVisible(await (step.kind === "create" ? deps.runExclusive(organizationId, work) : work()));
    } catch (error) {
      const reason = refusalOf(error, step.member);
      if (reason === undefined) throw error;
      return refused(composition, step, reason, observe, signal);
    }
    log.info("composition changed a resource", {
      ...namesOf(composition.object),
      resource: step.member.name,
      by: step.kind,
    });
    return true;
  }

  async function addTo(
    unit: UnitOfWork,
    composition: CompositionObject,
    { kind: action, member }: Step<"create" | "act" | "mark" | "wire"> | Step<"undo">,
    signal: AbortSignal,
  ): Promise<PendingCreation | undefined> {
    const kind = kinds.of(member.kind);
    const { id } = composition.metadata;
    const owner = { kind: composition.spec.kind, id };
    const record = (await recordOf(composition, signal))?.object;
    if (action === "create" || action === "act") unit.audit(auditOf(composition, member, action, record));
    switch (action) {
      case "create": {
        const spec = seal.spec(id, member.sealedSpec);
        const { organizationId } = composition.metadata;
        const attached = kind.consumer?.attach && { attached: attachedResources(composition, member) };
        const resource = { id: member.id, name: member.resourceName, organizationId, spec, owner, ...attached };
        return kind.create(unit, resource, signal);
      }
      case "act":
      case "undo": {
        if (kind.act === undefined || member.change === undefined)
          throw new Error(`${member.kind} has no change in place`);
        const target = seal.spec(id, action === "act" ? member.change.sealedTarget : member.sealedSpec);
        await kind.act(unit, member.id, member.change.action, target, signal);
        return undefined;
      }
      case "mark":
        await kind.mark(unit, member.id, member.isInDescriptor ? owner : undefined, signal);
        return undefined;
      case "wire":
        if (kind.consumer?.attach !== undefined)
          await kind.consumer.attach(unit, member.id, attachedResources(composition, member), signal);
        else
          await kind.consumer?.wire?.(
            unit,
            member.id,
            await attachedTo(composition, member, kinds, unit, signal),
            signal,
          );
        return undefined;
    }
  }

  /** Records a permanent refusal of a resource, by which the deployment or the step of the upgrade fails. */
  async function refused(
    composition: Stored<CompositionObject>,
    step: Step<"create" | "act" | "mark" | "wire"> | Step<"undo">,
    reason: string,
    observe: Observe,
    signal: AbortSignal,
  ): Promise<boolean> {
    const now = clock.now();
    const { object } = composition;
    if (object.status.state === "Upgrading") {
      await note(composition, endUpgrade(object, reason, now), observe, signal);
      return true;
    }
    const failed = afterFailure(object, { cause: "failed", reason }, now);
    if (failed.kind !== "record") return false;
    await note(composition, failed, observe, signal);
    return object.spec.kind !== "pipeline";
  }

  async function remove(
    { object }: Stored<CompositionObject>,
    { member, isOrderly }: Step<"remove">,
    signal: AbortSignal,
  ): Promise<boolean> {
    const unit = begin();
    const kind = kinds.of(member.kind);
    if (!(await kind.remove(unit, member.id, { isOrderly }, signal))) return false;
    if (kind.consumer !== undefined) await detachFrom(object.status.members, member.id, kinds, unit, signal);
    unit.audit(auditOf(object, member, "delete", (await recordOf(object, signal))?.object));
    await untilVisible(await unit.commit(signal));
    log.info("composition removes a resource", { ...namesOf(object), resource: member.name });
    return true;
  }

  async function forget(composition: Stored<CompositionObject>, signal: AbortSignal): Promise<void> {
    const unit = begin();
    unit.remove(compositionKind, composition);
    await untilVisible(await unit.commit(signal));
  }

  async function untilVisible(revision: bigint): Promise<void> {
    await Promise.allSettled([compositions.untilRevision(revision, 1_000), deployments.untilRevision(revision, 1_000)]);
  }

  return {
    reconciler: { name: "composition", reconcile },
    keys: () => compositions.ids(),
    inputs: (id) => `${compositions.get(id)?.modRevision ?? 0} ${observer.inputs(compositions.get(id)?.object)}`,
    subscribe(onChange) {
      const watches = [compositions.subscribe(onChange), observer.subscribe(onChange)];
      return {
        close() {
          for (const watch of watches) watch.close();
        },
      };
    },
  };
}
