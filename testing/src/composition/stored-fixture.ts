import { defineKind } from "@holdfast/controller/kernel/store/kind.ts";
import type { Collection } from "@holdfast/controller/kernel/store/collection.ts";
import { newMetadata, type Resource, type Stored } from "@holdfast/controller/kernel/store/resource.ts";
import type { Changes } from "@holdfast/controller/kernel/store/unit-of-work.ts";
import { environmentOf } from "@holdfast/controller/services/resource-kind/environment-of.ts";
import {
  absent,
  type Parent,
  type Phase,
  type ResourceKind,
  type ResourceSpec,
} from "@holdfast/controller/resource-kind/resource-kind.ts";
import { fixtureConsumer, fixtureKind } from "./fixture-kind.ts";

interface GadgetStatus {
  readonly phase: Exclude<Phase, "absent">;
  /** Outputs of other resources that it received. */
  readonly environment: Readonly<Record<string, string>>;
}

/** A resource of the fixture kind: a record without a machine. */
type GadgetObject = Resource<{ readonly spec: ResourceSpec; readonly isProtected?: true }, GadgetStatus>;

export const gadgetKind = defineKind<GadgetObject>("gadget");

/** The fixture kind over a store: requests are recorded, and take effect when the test calls `comeAbout`. */
export function createStoredFixture(gadgets: Collection<GadgetObject>): ResourceKind {
  const find = async (id: string, signal: AbortSignal) => gadgets.get(id) ?? gadgets.getCurrent(id, signal);

  async function change(
    unit: Changes,
    id: string,
    signal: AbortSignal,
    after: (gadget: GadgetObject) => GadgetObject,
  ): Promise<void> {
    const gadget = await gadgets.getCurrent(id, signal);
    if (gadget !== undefined) unit.update(gadgetKind, gadget, after(gadget.object));
  }

  return {
    ...fixtureKind,
    async create(unit, { id, name, organizationId, spec, owner }) {
      const metadata = { ...newMetadata(id, 0, { name, organizationId }), managedBy: owner };
      unit.claimName(gadgetKind, organizationId, name, id);
      unit.create(gadgetKind, { metadata, spec: { spec }, status: { phase: "creating", environment: {} } });
      return { release() {} };
    },
    async act(unit, id, _action, target, signal) {
      const current = (await gadgets.getCurrent(id, signal))?.object;
      if (current === undefined || JSON.stringify(current.spec.spec) === JSON.stringify(target)) return;
      await change(unit, id, signal, (gadget) => ({
        ...gadget,
        spec: { ...gadget.spec, spec: target },
        status: { ...gadget.status, phase: "changing" },
      }));
    },
    mark: (unit, id, owner, signal) =>
      change(unit, id, signal, (gadget) => ({ ...gadget, metadata: ownedBy(gadget, owner) })),
    protectedBy: (id) =>
      gadgets.get(id)?.object.spec.isProtected === true
        ? { error: "DELETION_PROTECTED", detail: "it is kept" }
        : undefined,
    async remove(unit, id, _options, signal) {
      const gadget = await gadgets.getCurrent(id, signal);
      if (gadget === undefined || gadget.object.status.phase === "deleting") return false;
      unit.update(gadgetKind, gadget, { ...gadget.object, status: { ...gadget.object.status, phase: "deleting" } });
      return true;
    },
    async observe(id, signal, { isCurrent } = { isCurrent: false }) {
      const gadget = (await (isCurrent ? gadgets.getCurrent(id, signal) : find(id, signal)))?.object;
      if (gadget === undefined) return absent;
      const { phase } = gadget.status;
      const healthy = phase === "running";
      return {
        phase,
        healthy,
        detail: healthy ? null : phase,
        progressPct: healthy ? 100 : 0,
        actual: gadget.spec.spec,
        outputsVersion: "",
      };
    },
    version: (id) => String(gadgets.get(id)?.modRevision ?? 0),
    subscribe: (onChange) => gadgets.subscribe((id) => onChange(id)),
    async outputs(id, signal) {
      const gadget = (await find(id, signal))?.object;
      return gadget && { type: "app", host: `${gadget.metadata.name}.internal`, port: 8080 };
    },
    consumer: {
      ...fixtureConsumer,
      wire: (unit, id, attached, signal) =>
        change(unit, id, signal, (gadget) => {
          const environment = environmentOf({ apiToken: "token", apiUrl: "https://api" }, attached);
          return { ...gadget, status: { ...gadget.status, environment } };
        }),
    },
  };
}

/** Completes a pending request: a requested resource runs, and a deleted one is removed with its name. */
export function completePending(unit: Changes, gadget: Stored<GadgetObject>): void {
  const { metadata, status } = gadget.object;
  if (status.phase === "deleting") {
    unit.remove(gadgetKind, gadget);
    unit.releaseName(gadgetKind, metadata.organizationId, metadata.name);
  } else unit.update(gadgetKind, gadget, { ...gadget.object, status: { ...status, phase: "running" } });
}

function ownedBy({ metadata }: GadgetObject, owner: Parent | undefined): GadgetObject["metadata"] {
  const { managedBy: _, ...rest } = metadata;
  return owner === undefined ? rest : { ...rest, managedBy: owner };
}
