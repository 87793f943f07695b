import type { Clock } from "@holdfast/common/clock.ts";
import type { Log } from "@holdfast/common/log.ts";
import { versionNumber } from "#catalog/version-number.ts";
import type { ImageFacts } from "@holdfast/compute/compute-provider.ts";
import { whenHostsChange } from "#fleet/host/host-changes.ts";
import { imagesInShort } from "#fleet/host/host-images.ts";
import type { HostObject } from "#fleet/host/host.ts";
import type { MachineObject } from "#fleet/machine/machine.ts";
import { createPeriodic } from "#kernel/runtime/periodic.ts";
import type { ControlLoop } from "#kernel/runtime/runner.ts";
import type { Collection } from "#kernel/store/collection.ts";
import type { UnitOfWork } from "#kernel/store/unit-of-work.ts";
import { newMetadata } from "#kernel/store/resource.ts";
import { lineOf, nodeImageKind, type NodeImageObject, type NodeImageSpec } from "./node-image.ts";

const name = "node-images";
/** For what nobody called back about. */
const lookEveryMs = 5_000;

export interface ImageRegisterDeps {
  readonly hosts: Collection<HostObject>;
  readonly nodeImages: Collection<NodeImageObject>;
  readonly machines: Collection<MachineObject>;
  readonly begin: () => UnitOfWork;
  readonly clock: Clock;
  readonly log: Log;
}

/**
 * Keeps the node images, and the kernels of virtual machines, that are the newest of some host in the store, so that all controllers see the same ones and since when.
 * What a host that does not answer told last still holds.
 */
export function createImageRegister(deps: ImageRegisterDeps): ControlLoop {
  const { hosts, nodeImages, machines, clock, log } = deps;
  const looking = createPeriodic(name, lookEveryMs, async (signal) => {
    const present = [...hosts.values()].filter(({ object }) => object.spec.destroyedAt === null);
    const facts = present.flatMap(({ object }) => object.status.images);
    const known = [...nodeImages.values()];
    const used = new Set(
      [...machines.values()].flatMap(({ object: { spec } }) => [spec.image, spec.guestKernel ?? ""]),
    );
    const { added, changed, gone } = registerChanges(
      facts,
      known.map(({ object }) => object),
      used,
      clock.now(),
    );
    if (added.length + changed.length + gone.length === 0) return;
    const stored = new Map(known.map((one) => [one.object.metadata.id, one]));
    const unit = deps.begin();
    for (const image of added) unit.create(nodeImageKind, image);
    for (const image of changed) {
      const before = stored.get(image.metadata.id);
      if (before !== undefined) unit.update(nodeImageKind, before, image);
    }
    for (const id of gone) {
      const before = stored.get(id);
      if (before !== undefined) unit.remove(nodeImageKind, before);
    }
    await unit.commit(signal);
    log.info("images changed", { added: added.map(({ metadata }) => metadata.id), gone });
  });
  // At once: a machine may be made out of an image that is the newest one no longer a moment later.
  return { ...looking, subscribe: (onChange) => whenHostsChange(hosts, imagesInShort, () => onChange(name)) };
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
  for (const [id, told] of offered) {
    const its = onceEach(told);
    if (known.some(({ metadata }) => metadata.id === id)) continue;
    added.push({
      metadata: newMetadata(id, now),
      spec: { engines: its.map(engineOf), ...manifestFacts(its), urgent: null },
      status: { newestOf: its.map(({ engine, version }) => lineOf(engine, version)) },
    });
  }
  const changed: NodeImageObject[] = [];
  const gone: string[] = [];
  for (const image of known) {
    const its = onceEach(offered.get(image.metadata.id) ?? []);
    const newestOf = its.map(({ engine, version }) => lineOf(engine, version));
    // Earlier versions of the platform did not note it.
    const spec = { ...manifestFacts(its), ...image.spec };
    const isAsKnown =
      newestOf.join() === image.status.newestOf.join() &&
      spec.textLibraries === image.spec.textLibraries &&
      spec.madeAt === image.spec.madeAt;
    if (newestOf.length === 0 && !used.has(image.metadata.id)) gone.push(image.metadata.id);
    else if (!isAsKnown)
      changed.push({ ...image, metadata: { ...image.metadata, updatedAt: now }, spec, status: { newestOf } });
  }
  return { added, changed, gone };
}

function manifestFacts([first]: readonly ImageFacts[]): Pick<NodeImageSpec, "textLibraries" | "madeAt"> {
  const { textLibraries, madeAt } = first ?? {};
  return { ...(textLibraries && { textLibraries }), ...(madeAt !== undefined && { madeAt }) };
}

/** The same for each order of hosts. */
function onceEach(told: readonly ImageFacts[]): ImageFacts[] {
  const byLine = new Map(told.map((facts) => [lineOf(facts.engine, facts.version), facts]));
  return [...byLine.keys()].sort().flatMap((line) => byLine.get(line) ?? []);
}

function engineOf({ engine, version, engineVersion = "" }: ImageFacts) {
  return { engine, version, engineVersion: versionNumber(engineVersion) };
}
