import { create } from "@bufbuild/protobuf";
import { type Call, type Handlers, type ServedService, serve } from "@holdfast/common/call.ts";
import { HoldfastError } from "@holdfast/common/errors.ts";
import {
  type DeployedProject,
  DeployedProjectSchema,
  type Project,
  ProjectPlanSchema,
  ProjectService,
} from "@holdfast/proto/holdfast/v1/project_pb.ts";
import { actorOf, organizationOf, requireUnlimited } from "#access/caller.ts";
import { mutate, type MutationOutcome } from "#access/mutate.ts";
import type { Changes } from "#kernel/store/unit-of-work.ts";
import type { Quotas } from "#access/organization/quotas.ts";
import type { CatalogData } from "#catalog/catalog.ts";
import { amountOf } from "#catalog/price.ts";
import type { CompositionSystem } from "#composition/composition-system.ts";
import { compositionKind, type CompositionObject, type Member, nameKindOf } from "#composition/composition.ts";
import { newComposition, redeployed } from "#composition/deploy.ts";
import { planDeploy, redactedChange } from "#composition/deploy-plan.ts";
import { deploymentKind, type DeploymentObject, isEnded, newDeployment } from "#composition/deployment.ts";
import { snapshotOf } from "#composition/deployment-progress.ts";
import { descriptorSchema } from "#composition/descriptor-schema.ts";
import { type Descriptor, invalidDescriptor } from "#composition/descriptor.ts";
import { driftFromDescriptor } from "#composition/drift.ts";
import { nameHolderOf, requireFreeNames } from "#composition/name-holder.ts";
import { notCreated, type Observe } from "#composition/composition-step.ts";
import type { Kernel } from "#kernel/kernel.ts";
import type { Stored } from "#kernel/store/resource.ts";
import type { ResourceSpec } from "#resource-kind/resource-kind.ts";
import { findByName, quotaOf, requireByName, requireKindScopes } from "../composition-access.ts";
import { deleteComposition } from "../delete-composition.ts";
import { changeMessage, deploymentMessage, planMessage, projectMessage, projectStates } from "./project-message.ts";

export interface ProjectApiDeps extends CompositionSystem, Pick<Kernel, "begin" | "cursors" | "clock" | "newId"> {
  readonly quotas: Pick<Quotas, "claim">;
  readonly catalog: CatalogData;
}

const kind = compositionKind.name;

/** The RPCs of projects. They write the desired state; the reconciler of compositions applies it. */
export function createProjectApi(deps: ProjectApiDeps): ServedService {
  const { compositions, deployments, records, kinds, seal, observer, reader, cursors, clock, newId, quotas } = deps;
  const schema = JSON.stringify(descriptorSchema(kinds), null, 2);

  const descriptorOf = ({ descriptor }: { readonly descriptor: Uint8Array }) =>
    reader.read(new TextDecoder().decode(descriptor));
  const observe = (project: CompositionObject | undefined, call: Call): Promise<Observe> =>
    project === undefined ? Promise.resolve(() => notCreated) : observer.observe(project, call.signal);
  const message = async (project: CompositionObject, call: Call): Promise<Project> =>
    projectMessage(project, await observe(project, call));

  /** Returns undefined for a Deleted project, whose name is free. */
  const notDeleted = (found: Stored<CompositionObject> | undefined) =>
    found === undefined || found.object.status.state === "Deleted" ? undefined : found;

  async function planOf(descriptor: Descriptor, current: CompositionObject | undefined, call: Call) {
    const observed = await observe(current, call);
    const opened = new Map<string, ResourceSpec>();
    const specOf = ({ id, sealedSpec }: Member) => {
      const spec = opened.get(id) ?? seal.spec(current?.metadata.id ?? "", sealedSpec);
      opened.set(id, spec);
      return spec;
    };
    const parent = { organizationId: organizationOf(call), name: descriptor.name, object: current };
    const nameHolder = nameHolderOf(deps, parent);
    const plan = planDeploy(current, descriptor, { kinds, specOf, observe: observed, nameHolder });
    if (plan.faults.length > 0) throw invalidDescriptor(plan.faults);
    return { plan, observe: observed, specOf };
  }

  async function deploy(
    descriptor: Descriptor,
    digest: string | undefined,
    unit: Changes,
    call: Call,
  ): Promise<MutationOutcome<DeployedProject>> {
    const { name, members } = descriptor;
    const organizationId = organizationOf(call);
    const found = findByName(compositions, "project", name, call);
    const current = notDeleted(found);
    refuseWhileBusy(current?.object);
    const { plan, observe: observed } = await planOf(descriptor, current?.object, call);
    if (digest !== undefined && digest !== plan.digest)
      throw new HoldfastError("PLAN_CHANGED", "The plan has changed since plan_digest was computed; plan again.", {
        members: { plan_digest: plan.digest },
      });
    const deploymentId = newId();
    const now = clock.now();
    const context = { kinds, seal, observe: observed, deploymentId, newId, now };
    const created = newOf(descriptor, plan.entries);
    const isNew = current === undefined;
    const id = current?.object.metadata.id ?? newId();
    const request = { id, organizationId, name, kind: "project" as const, members, monthlyCents: plan.monthlyCents };
    const { after, isNoop } = isNew
      ? { after: newComposition(request, context), isNoop: false }
      : redeployed(current.object, members, plan, context);
    if (isNew) {
      unit.create(compositionKind, after);
      // If the name is taken at the commit, a concurrent first deployment of the project was committed before.
      const taken = new HoldfastError("PROJECT_BUSY", `Another call has started to deploy the project ${name}.`);
      unit.claimName(nameKindOf("project"), organizationId, name, id, taken);
      // The new project replaces a Deleted project of the same name.
      if (found !== undefined) unit.remove(compositionKind, found);
    } else unit.update(compositionKind, current, after);
    const amounts = { ...quotaOf(kinds, created), ...(isNew && { projects: 1 }) };
    if (Object.keys(amounts).length > 0) await quotas.claim(unit, organizationId, amounts);
    // After the quota claim the collections include the objects of concurrent calls.
    requireFreeNames(name, created, nameHolderOf(deps, { organizationId, name, object: current?.object }));
    const source = { actor: actorOf(call), source: call.source };
    const spec = { compositionId: id, type: "deploy" as const, ...source, plan: plan.entries };
    const record = newDeployment(deploymentId, organizationId, spec, [], now);
    unit.create(deploymentKind, isNoop ? completedNoop(record, after, observed, now) : record);
    const response = create(DeployedProjectSchema, {
      projectId: id,
      deploymentId,
      name,
      status: projectStates[after.status.state],
      plan: plan.entries.map(planMessage),
    });
    return { id, response };
  }

  /** Throws PROJECT_BUSY unless the project is Running, Failed or Deleted. */
  function refuseWhileBusy(project: CompositionObject | undefined): void {
    const state = project?.status.state;
    if (state === undefined || state === "Running" || state === "Failed" || state === "Deleted") return;
    throw new HoldfastError("PROJECT_BUSY", `The project is ${state}.`, {
      members: { status: state, deployment_id: project?.status.deploymentId },
    });
  }

  async function requireDeployment(name: string, id: string, call: Call) {
    const project = requireByName(compositions, name, call);
    const record = await records.get(project.object.metadata.id, id);
    if (record === undefined) throw new HoldfastError("OBJECT_NOT_FOUND", `The project has no deployment ${id}.`);
    return { project, record };
  }

  const handlers: Handlers<typeof ProjectService> = {
    async deployProject(request, call) {
      requireUnlimited(call);
      const descriptor = descriptorOf(request);
      requireKindScopes(kinds, descriptor.members, call);
      return mutate(deps, call, { action: "project.deploy", kind, visibleIn: [compositions, deployments] }, (unit) =>
        deploy(descriptor, request.planDigest, unit, call),
      );
    },

    async planProject(request, call) {
      const descriptor = descriptorOf(request);
      const current = notDeleted(findByName(compositions, "project", descriptor.name, call))?.object;
      const { plan } = await planOf(descriptor, current, call);
      return create(ProjectPlanSchema, {
        plan: plan.entries.map(planMessage),
        planDigest: plan.digest,
        monthlyCost: amountOf(plan.monthlyCents),
        costDelta: amountOf(plan.monthlyCents - plan.beforeCents),
        currency: deps.catalog.currency,
        warnings: [...plan.warnings],
      });
    },

    async listProjects(request, call) {
      const page = { ...cursors.open(call, "projects", null, request), organizationId: organizationOf(call) };
      const { items, next } = compositions.page(({ spec }) => spec.kind === "project", page);
      return { projects: await Promise.all(items.map(({ object }) => message(object, call))), ...page.next(next) };
    },

    getProject: ({ name }, call) => message(requireByName(compositions, name, call).object, call),

    async listDeployments(request, call) {
      const { object } = requireByName(compositions, request.name, call);
      const page = cursors.open(call, `deployments ${object.metadata.id}`, null, request);
      const { items, next } = await records.page(object.metadata.id, page);
      const observed = await observe(object, call);
      return { deployments: items.map((record) => deploymentMessage(record, object, observed)), ...page.next(next) };
    },

    async getDeployment({ name, deploymentId }, call) {
      const { project, record } = await requireDeployment(name, deploymentId, call);
      return deploymentMessage(record, project.object, await observe(project.object, call));
    },

    abortDeployment: ({ name, deploymentId }, call) =>
      mutate(deps, call, { action: "project.abort", kind, visibleIn: [compositions] }, async (unit) => {
        const { project, record } = await requireDeployment(name, deploymentId, call);
        const { object } = project;
        // The rollback changes and deletes resources.
        requireKindScopes(kinds, object.status.members, call);
        const isCurrent = object.status.deploymentId === deploymentId && !isEnded(record);
        if (!isCurrent || object.status.deadline === null || object.status.state === "RollingBack")
          throw new HoldfastError("WRONG_STATE", "The deployment has ended, or is being rolled back.", {
            members: { status: record.status.state },
          });
        const after: CompositionObject = { ...object, status: { ...object.status, isAborted: true } };
        const response = deploymentMessage(record, after, await observe(after, call));
        unit.update(compositionKind, project, after);
        return { id: object.metadata.id, response };
      }),

    async getDrift({ name }, call) {
      const { object } = requireByName(compositions, name, call);
      const { observe: observed, specOf } = await planOf({ name, members: [] }, object, call);
      const desired = seal.desired(object);
      const desiredOf = (member: Member) => desired.find((each) => each.name === member.name);
      const context = { kinds, specOf, observe: observed };
      const resources = object.status.members
        .filter(({ step }) => step === "ready")
        .map((member) => ({ member, changes: driftFromDescriptor(member, desiredOf(member), context) }))
        .filter(({ changes }) => changes.length > 0);
      return {
        resources: resources.map(({ member, changes }) => ({
          logicalName: member.name,
          kind: member.kind,
          changes: changes.map((each) => changeMessage(redactedChange(each))),
        })),
      };
    },

    releaseResource: ({ name, logicalName }, call) =>
      mutate(deps, call, { action: "project.release", kind, visibleIn: [compositions] }, async (unit) => {
        const project = requireByName(compositions, name, call);
        const { object } = project;
        refuseWhileBusy(object);
        const member = object.status.members.find((each) => each.name === logicalName && each.step === "ready");
        if (member === undefined)
          throw new HoldfastError("OBJECT_NOT_FOUND", `The project has no resource ${logicalName}.`);
        if (member.isInDescriptor)
          throw new HoldfastError(
            "WRONG_STATE",
            `The descriptor contains ${logicalName}; deploy a descriptor without it first.`,
          );
        const members = object.status.members.filter((each) => each !== member);
        const after = { ...object, status: { ...object.status, members } };
        const response = await message(after, call);
        unit.update(compositionKind, project, after);
        if (member.isMarked) await kinds.of(member.kind).mark(unit, member.id, undefined, call.signal);
        return { id: object.metadata.id, detail: logicalName, response };
      }),

    async deleteProject({ name }, call) {
      const { object } = requireByName(compositions, name, call);
      if (object.status.state !== "Deleting") refuseWhileBusy(object);
      const find = () => requireByName(compositions, name, call);
      return deleteComposition(deps, find, (project) => message(project, call), call);
    },

    getProjectSchema: async () => ({ text: schema }),
  };
  return serve(ProjectService, handlers);
}

/** The members that a plan creates. */
function newOf({ members }: Descriptor, entries: readonly DeploymentObject["spec"]["plan"][number][]) {
  const created = new Set(entries.filter(({ action }) => action === "create").map(({ name }) => name));
  return members.filter(({ name }) => created.has(name));
}

/** The completed record of a deployment that required no changes. */
function completedNoop(
  record: DeploymentObject,
  project: CompositionObject,
  observe: Observe,
  now: number,
): DeploymentObject {
  return {
    ...record,
    status: {
      ...record.status,
      state: "Completed",
      progressPct: 100,
      startedAt: now,
      finishedAt: now,
      end: { state: project.status.state, resources: snapshotOf(project, observe) },
    },
  };
}
