import type { CompositionObject, Member } from "./composition.ts";
import type { RecordStep, Observe } from "./composition-step.ts";
import type { DeploymentObject, DeploymentStep, ResourceSnapshot } from "./deployment.ts";
import { statusOfMember } from "./member.ts";

/** The record after a step of its composition; the same object if the step does not change it. */
export function afterChange(
  record: DeploymentObject,
  before: CompositionObject,
  { after, deployment }: RecordStep,
  observe: Observe,
  now: number,
): DeploymentObject {
  if (deployment === undefined || record.status.finishedAt !== null) return record;
  const { status, metadata } = record;
  const startedAt = status.startedAt ?? now;
  const touched = { ...record, metadata: { ...metadata, updatedAt: now } };
  if (deployment.state === "Applying") return { ...touched, status: { ...status, state: "Applying", startedAt } };
  const { state, error = null } = deployment;
  return {
    ...touched,
    status: {
      ...status,
      state,
      error,
      startedAt,
      finishedAt: now,
      progressPct: state === "Completed" ? 100 : progressOf(before, observe),
      steps: state === "Completed" ? status.steps.map(done) : endedSteps(status.steps, before.status.members, error),
      end: { state: after.status.state, resources: snapshotOf(after, observe) },
    },
  };
}

/** The resources of a composition with their status in the API. */
export function snapshotOf({ status }: CompositionObject, observe: Observe): readonly ResourceSnapshot[] {
  return status.members.map((member) => {
    const { word, detail } = statusOfMember(member, observe(member));
    return { name: member.name, kind: member.kind, id: member.id, status: word, detail };
  });
}

/** Progress of a deployment, 0 to 99. */
export function progressOf({ status }: CompositionObject, observe: Observe): number {
  const managed = status.members.filter(({ isInDescriptor, step }) => isInDescriptor && step !== "leaving");
  if (managed.length === 0) return 0;
  const percentages = managed.map((member) =>
    member.step === "ready" && member.change === undefined ? 100 : observe(member).progressPct,
  );
  return Math.min(99, Math.floor(percentages.reduce((sum, percentage) => sum + percentage, 0) / managed.length));
}

/** The steps of an upgrade in progress, with their current status. */
export function stepsNow(steps: readonly DeploymentStep[], members: readonly Member[]): readonly DeploymentStep[] {
  return steps.map((step) => {
    const change = members.find(({ name }) => name === step.name)?.change;
    if (change === undefined) return done(step);
    return { ...step, status: change.step === "wanted" ? "Pending" : "Applying", error: change.error ?? null };
  });
}

function done(step: DeploymentStep): DeploymentStep {
  return { ...step, status: "Completed", error: null };
}

/** The steps of a failed upgrade: the first step that is not completed has failed; later ones were not started. */
function endedSteps(
  steps: readonly DeploymentStep[],
  members: readonly Member[],
  error: string | null,
): readonly DeploymentStep[] {
  const now = stepsNow(steps, members);
  const at = now.findIndex(({ status }) => status !== "Completed");
  return now.map((step, index) => (index === at ? { ...step, status: "Failed", error } : step));
}
