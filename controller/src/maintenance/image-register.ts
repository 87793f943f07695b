import type { Clock } from "@holdfast/common/clock.ts";
import type { Log } from "@holdfast/common/log.ts";
import { versionNumber } from "../catalog/version-number.ts";
import type { ImageFacts } from "../compute/compute-provider.ts";
import type { MachineObject } from "../machine/machine.ts";
import { createPeriodic } from "../runtime/periodic.ts";
import type { Reconciled } from "../runtime/runner.ts";
import type { Collection } from "../store/collection.ts";
import type { UnitOfWork } from "../store/unit-of-work.ts";
import { lineOf, type NodeImageObject } from "./node-image.ts";

/** A new image is known to every controller after at most this. */
const lookEveryMs = 10_000;

export interface ImageRegisterDeps {
  readonly provider: { images(signal: AbortSignal): Promise<ImageFacts[]> };
  readonly nodeImages: Collection<NodeImageObject>;
  readonly machines: Collection<MachineObject>;
  readonly begin: () => UnitOfWork;
  readonly clock: Clock;
  readonly log: Log;
}

/** Keeps the node images in the store as the provider has them, so that all controllers see the same ones and since when. */
export function createImageRegister(deps: ImageRegisterDeps): Reconciled {
  const { nodeImages, machines, clock, log } = deps;
  return createPeriodic("node-images", lookEveryMs, async (signal) => {
    const facts = await deps.provider.images(signal);
    const known = [...nodeImages.values()];
    const used = new Set([...machines.values()].map(({ object }) => object.spec.image));
    const { added, changed, gone } = registerChanges(
      facts,
      known.map(({ object }) => object),
      used,
      clock.now(),
    );
    if (added.length + changed.length + gone.length === 0) return;
    const stored = new Map(known.map((one) => [one.object.metadata.id, one]));
    const unit = deps.begin();
    for (const image of added) unit.create("node-image", image);
    for (const image of changed) {
      const before = stored.get(image.metadata.id);
      if (before !== undefined) unit.update("node-image", before, image);
    }
    for (const id of gone) {
      const before = stored.get(id);
      if (before !== undefined) unit.remove("node-image", before);
    }
    await unit.commit(signal);
    log.info("images changed", { added: added.map(({ metadata }) => metadata.id), gone });
  });
}

/** Pure: what is to change in the register. An image that no machine gets any more stays while one runs from it. */
export function registerChanges(
  facts: readonly ImageFacts[],
  known: readonly NodeImageObject[],
  used: ReadonlySet<string>,
  now: number,
): { added: NodeImageObject[]; changed: NodeImageObject[]; gone: string[] } {
  const offered = Map.groupBy(
    facts.filter(({ available, image }) => available && image !== undefined && image !== ""),
    ({ image }) => image ?? "",
  );
  const added: NodeImageObject[] = [];
  for (const [id, its] of offered) {
    if (known.some(({ metadata }) => metadata.id === id)) continue;
    added.push({
      metadata: { id, name: id, organizationId: "", generation: 1, createdAt: now, updatedAt: now },
      spec: { engines: its.map(engineOf), ...librariesOf(its), urgent: null },
      status: { newestOf: its.map(({ engine, version }) => lineOf(engine, version)) },
    });
  }
  const changed: NodeImageObject[] = [];
  const gone: string[] = [];
  for (const image of known) {
    const its = offered.get(image.metadata.id) ?? [];
    const newestOf = its.map(({ engine, version }) => lineOf(engine, version));
    // Earlier versions of the platform did not note it.
    const spec = image.spec.textLibraries === undefined ? { ...image.spec, ...librariesOf(its) } : image.spec;
    const isAsKnown =
      newestOf.join() === image.status.newestOf.join() && spec.textLibraries === image.spec.textLibraries;
    if (newestOf.length === 0 && !used.has(image.metadata.id)) gone.push(image.metadata.id);
    else if (!isAsKnown)
      changed.push({ ...image, metadata: { ...image.metadata, updatedAt: now }, spec, status: { newestOf } });
  }
  return { added, changed, gone };
}

function librariesOf([first]: readonly ImageFacts[]) {
  return first?.textLibraries === undefined ? {} : { textLibraries: first.textLibraries };
}

function engineOf({ engine, version, engineVersion = "" }: ImageFacts) {
  return { engine, version, engineVersion: versionNumber(engineVersion) };
}
