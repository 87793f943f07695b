import type { Clock } from "@holdfast/common/clock.ts";
import type { Log } from "@holdfast/common/log.ts";
import { versionNumber } from "#catalog/version-number.ts";
import type { ImageFacts } from "@holdfast/compute/compute-provider.ts";
import { watchHosts } from "#fleet/host/host-changes.ts";
import { imagesFingerprint } from "#fleet/host/host-images.ts";
import type { HostObject } from "#fleet/host/host.ts";
import type { MachineObject } from "#fleet/machine/machine.ts";
import { createPeriodic } from "#kernel/runtime/periodic.ts";
import type { ControlLoop } from "#kernel/runtime/runner.ts";
import type { Collection } from "#kernel/store/collection.ts";
import type { UnitOfWork } from "#kernel/store/unit-of-work.ts";
import { newMetadata } from "#kernel/store/resource.ts";
import { seriesNameOf, nodeImageKind, type NodeImageObject, type NodeImageSpec } from "./node-image.ts";

const name = "node-images";
/** Interval of checks in addition to the notifications of hosts. */
const checkIntervalMs = 5_000;

export interface ImageInventoryDeps {
  readonly hosts: Collection<HostObject>;
  readonly nodeImages: Collection<NodeImageObject>;
  readonly machines: Collection<MachineObject>;
  readonly begin: () => UnitOfWork;
  readonly clock: Clock;
  readonly log: Log;
}

/**
 * The register of node images and guest kernels. It stores each image that is the newest on at least one host, so that
 * all controllers have the same images and dates. For a host that does not respond the last report is used.
 */
export function createImageInventory(deps: ImageInventoryDeps): ControlLoop {
  const { hosts, nodeImages, machines, clock, log } = deps;
  const periodic = createPeriodic(name, checkIntervalMs, async (signal) => {
    const present = [...hosts.values()].filter(({ object }) => object.spec.destroyedAt === null);
    const facts = present.flatMap(({ object }) => object.status.images);
    const registered = [...nodeImages.values()];
    const used = new Set(
      [...machines.values()].flatMap(({ object: { spec } }) => [spec.image, spec.guestKernel ?? ""]),
    );
    const { added, changed, removed } = registerChanges(
      facts,
      registered.map(({ object }) => object),
      used,
      clock.now(),
    );
    if (added.length + changed.length + removed.length === 0) return;
    const stored = new Map(registered.map((image) => [image.object.metadata.id, image]));
    const unit = deps.begin();
    for (const image of added) unit.create(nodeImageKind, image);
    for (const image of changed) {
      const before = stored.get(image.metadata.id);
      if (before !== undefined) unit.update(nodeImageKind, before, image);
    }
    for (const id of removed) {
      const before = stored.get(id);
      if (before !== undefined) unit.remove(nodeImageKind, before);
    }
    await unit.commit(signal);
    log.info("image inventory changed", { added: added.map(({ metadata }) => metadata.id), removed });
  });
  // Also runs when a host reports new images: a machine may be created from an image before the next interval.
  return { ...periodic, subscribe: (onChange) => watchHosts(hosts, imagesFingerprint, () => onChange(name)) };
}

/** The changes of the register. An image that new machines no longer get is retained while a machine runs from it. */
export function registerChanges(
  facts: readonly ImageFacts[],
  registered: readonly NodeImageObject[],
  used: ReadonlySet<string>,
  now: number,
): { added: NodeImageObject[]; changed: NodeImageObject[]; removed: string[] } {
  const offered = Map.groupBy(
    facts.filter(({ available, image }) => available && image !== undefined && image !== ""),
    ({ image }) => image ?? "",
  );
  const added: NodeImageObject[] = [];
  for (const [id, facts] of offered) {
    const lines = oncePerSeries(facts);
    if (registered.some(({ metadata }) => metadata.id === id)) continue;
    added.push({
      metadata: newMetadata(id, now),
      spec: { engines: lines.map(engineOf), ...manifestFacts(lines), urgent: null },
      status: { newestOf: lines.map(({ engine, version }) => seriesNameOf(engine, version)) },
    });
  }
  const changed: NodeImageObject[] = [];
  const removed: string[] = [];
  for (const image of registered) {
    const lines = oncePerSeries(offered.get(image.metadata.id) ?? []);
    const newestOf = lines.map(({ engine, version }) => seriesNameOf(engine, version));
    // Adds facts that were unknown when the image was registered.
    const spec = { ...manifestFacts(lines), ...image.spec };
    const isUnchanged =
      newestOf.join() === image.status.newestOf.join() &&
      spec.textLibraries === image.spec.textLibraries &&
      spec.madeAt === image.spec.madeAt;
    if (newestOf.length === 0 && !used.has(image.metadata.id)) removed.push(image.metadata.id);
    else if (!isUnchanged)
      changed.push({ ...image, metadata: { ...image.metadata, updatedAt: now }, spec, status: { newestOf } });
  }
  return { added, changed, removed };
}

function manifestFacts([first]: readonly ImageFacts[]): Pick<NodeImageSpec, "textLibraries" | "madeAt"> {
  const { textLibraries, madeAt } = first ?? {};
  return { ...(textLibraries && { textLibraries }), ...(madeAt !== undefined && { madeAt }) };
}

/** One entry for each series, sorted, so that the order of hosts does not matter. */
function oncePerSeries(facts: readonly ImageFacts[]): ImageFacts[] {
  const bySeries = new Map(facts.map((facts) => [seriesNameOf(facts.engine, facts.version), facts]));
  return [...bySeries.keys()].sort().flatMap((series) => bySeries.get(series) ?? []);
}

function engineOf({ engine, version, engineVersion = "" }: ImageFacts) {
  return { engine, version, engineVersion: versionNumber(engineVersion) };
}
