import { type Call, type Handlers, type ServedService, serve } from "@holdfast/common/call.ts";
import { HoldfastError } from "@holdfast/common/errors.ts";
import { type Stack, StackService } from "@holdfast/proto/holdfast/v1/stack_pb.ts";
import { actorOf, organizationOf, requireUnlimited } from "#access/caller.ts";
import { mutate } from "#access/mutate.ts";
import type { CatalogData } from "#catalog/catalog.ts";
import { amountOf, isAccepted } from "#catalog/price.ts";
import { notCreated } from "#composition/composition-step.ts";
import { compositionKind, type CompositionObject, type Member } from "#composition/composition.ts";
import { costOf } from "#composition/deploy-plan.ts";
import { deploymentKind, newDeployment } from "#composition/deployment.ts";
import type { Descriptor } from "#composition/descriptor.ts";
import { blockedReasons, planStackUpgrade, stepsOf, upgradeRequested } from "#composition/upgrade.ts";
import type { Kernel } from "#kernel/kernel.ts";
import { pageByName } from "#kernel/page/cursor.ts";
import { requireById, requireKindScopes } from "../composition-access.ts";
import { deleteComposition } from "../delete-composition.ts";
import { launch, type LaunchDeps } from "../launch.ts";
import { offerOf, requireChoice, requireOffer } from "../template/template.ts";
import type { Templates } from "../template/templates.ts";
import {
  migrationMessage,
  stackMessage,
  templateMessage,
  upgradeChangeMessage,
  upToDateMessage,
} from "./stack-message.ts";

export interface StackApiDeps extends LaunchDeps, Pick<Kernel, "cursors"> {
  readonly catalog: CatalogData;
  readonly templates: Templates;
  /** True if the organization has an enabled provider of models. */
  readonly hasProvider: (organizationId: string) => boolean;
}

const kind = compositionKind.name;

/** The RPCs of stacks and of their templates. */
export function createStackApi(deps: StackApiDeps): ServedService {
  const {
    compositions,
    deployments,
    records,
    kinds,
    seal,
    observer,
    reader,
    cursors,
    clock,
    newId,
    catalog,
    templates,
    hasProvider,
  } = deps;

  const require = (id: string, call: Call) => requireById(compositions, "stack", id, call);
  const message = async (stack: CompositionObject, call: Call): Promise<Stack> =>
    stackMessage(stack, await observer.observe(stack, call.signal));

  const lineItemsOf = ({ members }: Descriptor) =>
    members.flatMap(({ name, kind, spec }) => costOf(kind, spec, kinds).map((line) => ({ name, kind, ...line })));
  const centsOf = (descriptor: Descriptor) => lineItemsOf(descriptor).reduce((sum, { cents }) => sum + cents, 0);

  function requireAccepted(accepted: number | undefined, cents: number): void {
    if (accepted !== undefined && isAccepted(accepted, cents)) return;
    throw new HoldfastError(
      "COST_DRIFT",
      `The monthly cost is ${amountOf(cents)} ${catalog.currency}; accept this amount.`,
      {
        members: { monthly_cost: amountOf(cents), currency: catalog.currency },
      },
    );
  }

  /** The upgrade to the newest version of the stack's template. */
  function upgradeOf(stack: CompositionObject) {
    const template = templates.require(stack.spec.template?.name ?? "");
    const offered = requireOffer(template, reader, stack.metadata.name, { zone: stack.spec.zone });
    const specOf = (member: Member) => seal.spec(stack.metadata.id, member.sealedSpec);
    // A disk that users have grown keeps its size, although the template has a smaller one.
    const members = offered.members.map((desired) => {
      const member = stack.status.members.find(({ name, kind }) => name === desired.name && kind === desired.kind);
      const followed = member && kinds.of(desired.kind).followed?.(desired.spec, specOf(member));
      return followed === undefined ? desired : { ...desired, spec: followed };
    });
    const descriptor = { ...offered, members };
    const changes = planStackUpgrade(stack.status.members, descriptor, kinds, specOf);
    return { template, descriptor, changes, cents: centsOf(descriptor), reasons: blockedReasons(changes) };
  }

  function refuseUnlessRunning({ status }: CompositionObject): void {
    if (status.state === "Running") return;
    const members = { status: status.state, migration_id: status.deploymentId };
    if (status.state === "Upgrading")
      throw new HoldfastError("UPGRADE_IN_PROGRESS", "Another upgrade is in progress.", { members });
    throw new HoldfastError("WRONG_STATE", `The stack must be Running; it is ${status.state}.`, {
      members: { status: status.state },
    });
  }

  const handlers: Handlers<typeof StackService> = {
    async listStackTemplates(request, call) {
      const page = cursors.open(call, "stack-templates", null, request);
      const { items, next } = pageByName(templates.newest, ({ name }) => name, page);
      return {
        templates: items.map((each) => templateMessage(each, offerOf(each, reader).reason)),
        ...page.next(next),
      };
    },

    async getStackTemplate({ name }) {
      const template = templates.require(name);
      return templateMessage(template, offerOf(template, reader).reason);
    },

    async previewStack({ templateName }) {
      const descriptor = requireOffer(templates.require(templateName), reader, templateName, {});
      const lines = lineItemsOf(descriptor);
      const ceilings = lines.filter(({ isCeiling }) => isCeiling);
      return {
        templateName,
        currency: catalog.currency,
        monthlyTotal: amountOf(centsOf(descriptor)),
        lineItems: lines.map(({ name, kind, description, cents, isCeiling }) => ({
          symbolicName: name,
          kind,
          description,
          monthlyCost: amountOf(cents),
          isCeiling,
        })),
        warnings: ceilings.map(
          ({ name, description }) => `${name}: ${description} depends on use; the preview has the maximum.`,
        ),
      };
    },

    async createStack({ name, templateName, acceptedMonthlyCost, zone }, call) {
      requireUnlimited(call);
      requireChoice({ zone }, catalog);
      const { version, ...template } = templates.require(templateName);
      const descriptor = requireOffer({ version, ...template }, reader, name, { zone });
      requireKindScopes(kinds, descriptor.members, call);
      const organizationId = organizationOf(call);
      if (template.needsProvider && !hasProvider(organizationId))
        throw new HoldfastError(
          "INFERENCE_NOT_CONFIGURED",
          `${templateName} needs a provider of models; configure and enable one first.`,
        );
      const monthlyCents = centsOf(descriptor);
      requireAccepted(acceptedMonthlyCost, monthlyCents);
      const priced = { monthlyCents, acceptedCents: Math.round((acceptedMonthlyCost ?? 0) * 100) };
      const launchRequest = {
        kind: "stack" as const,
        organizationId,
        descriptor,
        template: { name: templateName, version },
        ...priced,
        zone,
      };
      const messageOf = (stack: CompositionObject) => stackMessage(stack, () => notCreated);
      return launch(deps, launchRequest, messageOf, call);
    },

    async listStacks(request, call) {
      const page = { ...cursors.open(call, "stacks", null, request), organizationId: organizationOf(call) };
      const { items, next } = compositions.page(({ spec }) => spec.kind === "stack", page);
      return { stacks: await Promise.all(items.map(({ object }) => message(object, call))), ...page.next(next) };
    },

    getStack: ({ id }, call) => message(require(id, call).object, call),
    deleteStack: ({ id }, call) =>
      deleteComposition(
        deps,
        () => require(id, call),
        (stack) => message(stack, call),
        call,
      ),

    async previewUpgrade({ id }, call) {
      const { object } = require(id, call);
      const { template, changes, cents, reasons } = upgradeOf(object);
      return {
        fromVersion: object.spec.template?.version ?? "",
        toVersion: template.version,
        changes: changes.map(upgradeChangeMessage),
        currentMonthlyCost: amountOf(object.spec.monthlyCents),
        newMonthlyCost: amountOf(cents),
        costDelta: amountOf(cents - object.spec.monthlyCents),
        blocked: reasons.length > 0,
        blockedReasons: [...reasons],
      };
    },

    upgradeStack: ({ id, acceptedMonthlyCost }, call) =>
      mutate(deps, call, { action: "stack.upgrade", kind, visibleIn: [compositions, deployments] }, async (unit) => {
        const stack = require(id, call);
        const { object } = stack;
        refuseUnlessRunning(object);
        const { organizationId } = object.metadata;
        const { template, descriptor, changes, cents, reasons } = upgradeOf(object);
        const fromVersion = object.spec.template?.version ?? "";
        if (template.version === fromVersion) return { unchanged: upToDateMessage(id, fromVersion) };
        if (reasons.length > 0)
          throw new HoldfastError("UPGRADE_BLOCKED", reasons.join(" "), { members: { blocked_reasons: reasons } });
        requireAccepted(acceptedMonthlyCost, cents);
        requireKindScopes(kinds, [...descriptor.members, ...object.status.members], call);
        const [deploymentId, now] = [newId(), clock.now()];
        const upgrade = {
          monthlyCents: cents,
          acceptedCents: Math.round((acceptedMonthlyCost ?? 0) * 100),
          template: { name: template.name, version: template.version },
        };
        const after = upgradeRequested(object, descriptor, changes, { deploymentId, upgrade, seal, now });
        if (after === undefined) throw new HoldfastError("WRONG_STATE", "The stack cannot be upgraded now.");
        const caller = { actor: actorOf(call), source: call.source };
        const versions = { fromVersion, toVersion: template.version };
        const record = newDeployment(
          deploymentId,
          organizationId,
          { compositionId: id, type: "upgrade", ...caller, plan: [], ...versions },
          stepsOf(object.status.members, changes),
          now,
        );
        const response = migrationMessage(record, after);
        unit.update(compositionKind, stack, after);
        unit.create(deploymentKind, record);
        return { id, response };
      }),

    async listMigrations(request, call) {
      const { object } = require(request.id, call);
      const page = cursors.open(call, `migrations ${request.id}`, null, request);
      const { items, next } = await records.page(request.id, { ...page, type: "upgrade" });
      return { migrations: items.map((record) => migrationMessage(record, object)), ...page.next(next) };
    },

    async getMigration({ id, migrationId }, call) {
      const { object } = require(id, call);
      const record = await records.get(id, migrationId);
      if (record?.spec.type !== "upgrade")
        throw new HoldfastError("OBJECT_NOT_FOUND", `The stack has no migration ${migrationId}.`);
      return migrationMessage(record, object);
    },
  };
  return serve(StackService, handlers);
}
