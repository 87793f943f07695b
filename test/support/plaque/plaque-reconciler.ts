import type { Kernel } from "@holdfast/controller/kernel/kernel.ts";
import { type Outcome, settled } from "@holdfast/controller/kernel/runtime/reconciler.ts";
import type { ControlLoop } from "@holdfast/controller/kernel/runtime/runner.ts";
import type { Collection } from "@holdfast/controller/kernel/store/collection.ts";
import { type Plaque, plaqueKind } from "./plaque.ts";

interface PlaqueWorkDeps extends Pick<Kernel, "begin"> {
  readonly plaques: Collection<Plaque>;
  /** Stands before the words of each. */
  readonly motto: string;
}

/** Engraves each plaque once, and says so in the same transaction. Key: id of the object. */
export function createPlaqueWork({ plaques, begin, motto }: PlaqueWorkDeps): ControlLoop {
  async function reconcile(id: string, signal: AbortSignal): Promise<Outcome> {
    const plaque = await plaques.fresh(id, signal);
    if (plaque === undefined || plaque.object.status.engraved !== null) return settled;
    const { metadata, spec } = plaque.object;
    const engraved = `${motto}: ${spec.words}`;
    const unit = begin();
    unit.update(plaqueKind, plaque, { ...plaque.object, status: { engraved } });
    unit.event({
      type: "plaque.engraved",
      organizationId: metadata.organizationId,
      objectKind: plaqueKind.name,
      objectId: id,
      data: { plaque_id: id, engraved },
    });
    await plaques.reached(await unit.commit(signal), 1_000);
    return settled;
  }

  return {
    reconciler: { name: "plaque", reconcile },
    keys: () => plaques.ids(),
    subscribe: (onChange) => plaques.subscribe(onChange),
    inputs: (id) => plaques.get(id)?.modRevision ?? 0n,
  };
}
