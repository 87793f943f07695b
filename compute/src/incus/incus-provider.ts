import { rm } from "node:fs/promises";
import { join } from "node:path";
import { lookUp } from "@holdfast/common/look-up.ts";
import { largestTreeBytes } from "@holdfast/image/image-manifest.ts";
import { ComputeFailure, ComputePending } from "../compute-failure.ts";
import { type ComputeProvider, type InstanceKind, type MachineFacts, rootBytesOf } from "../compute-provider.ts";
import { removeWithDisk } from "../local/data-disk.ts";
import { createDirectoryLock } from "../local/directory-lock.ts";
import { createGuestBoots } from "../local/guest-boots.ts";
import type { RootStorage } from "../local/host-facts.ts";
import { createImageUpkeep, withImage } from "../local/image-upkeep.ts";
import { type MachineHostDeps, openMachineHost } from "../local/machine-host.ts";
import { addressOf, createMachineNumbers } from "../local/machine-number.ts";
import { writeRecord } from "../local/machine-record.ts";
import { createMachineSnapshots, promisedToSnapshots } from "../local/machine-snapshots.ts";
import { makeMachine } from "../local/make-machine.ts";
import { choiceOf, createNodeImages } from "../local/node-images.ts";
import { codeInside, type Inside, insideOf, leastInit } from "../local/place.ts";
import { createPublicAddresses } from "../local/public-addresses.ts";
import { createRefill } from "../local/refill.ts";
import { createSpares, type SpareKind } from "../local/spares.ts";
import { requireTier, tierRefusal } from "../local/storage-tiers.ts";
import { createBootstrap } from "../process/bootstrap-disk.ts";
import { createMachineCode } from "../process/machine-code.ts";
import { admitMachine, countYoung } from "./admission.ts";
import { createContainerForm } from "./container-form.ts";
import { whyNoGuests } from "./guest-ability.ts";
import { createPackedDirectories } from "./guest-disks.ts";
import { createGuestKernels } from "./guest-kernels.ts";
import { createHostPaths } from "./host-paths.ts";
import type { IncusClient } from "./incus-client.ts";
import { createIncusImages } from "./incus-images.ts";
import { createIncusMaterials } from "./incus-materials.ts";
import { dataInDisk, guestKey, inside, instanceName } from "./instance-config.ts";
import type { InstanceForm } from "./instance-form.ts";
import { createInstancePower, type Instance, isUp } from "./instance-power.ts";
import { createInstances, kindOf } from "./instances.ts";
import { createMachineEdge, edgePlace, hostNumber } from "./machine-edge.ts";
import { createMachineInventory, isMachineId } from "./machine-inventory.ts";
import { unmountDisk } from "./mounted-disk.ts";
import { readRootPool } from "./root-pool.ts";
import { createVirtualMachineForm } from "./virtual-machine-form.ts";

export interface IncusProviderDeps extends MachineHostDeps {
  readonly incus: IncusClient;
  /** First two numbers of the machines' addresses. The very first address is the host's own. */
  readonly addressBlock: string;
  /** Ports of the host that machines may call: of controllers and of DNS. */
  readonly hostPorts: readonly number[];
  /** Storage pool for the roots of a tier's machines. */
  readonly pool: (tier: string) => string;
  /** First program of a machine, as a container has it; the keeper when absent. */
  readonly command?: readonly string[];
  /** Data disks made ahead; none when absent. */
  readonly spares?: {
    readonly kinds: (inside: Inside, data: string) => readonly SpareKind[];
    readonly count: number;
    /** Missing ones are made when no machine was for so long; 3 s when absent. */
    readonly quietMs?: number;
  };
}

export interface IncusProvider extends ComputeProvider {
  /** Why no virtual machine can be made here; undefined where one can. */
  whyNoVirtualMachines(signal: AbortSignal): Promise<string | undefined>;
  /** Where machines of a tier have their roots, and how much room is there. */
  rootsOf(tier: string, signal: AbortSignal): Promise<RootStorage>;
  /** Makes what machines are made from, so that the first one does not wait for it. */
  prepare(signal: AbortSignal): Promise<void>;
  /** Makes the data disks that are missing; resolves at once when another controller does. */
  refill(signal: AbortSignal): Promise<void>;
  close(): Promise<void>;
}

const keeper = ["/holdfast/node/node", "--max-semi-space-size=1", `${codeInside}/keeper.mjs`];

/**
 * Machines as containers and virtual machines of an Incus daemon on this host. Whether one runs is what Incus says, now; what it is lies in its
 * directory, as with machines of the process provider; nothing is kept in memory.
 */
export function createIncusProvider(deps: IncusProviderDeps): IncusProvider {
  const { incus, abilities, clock, log, environment, imagesDir, pool, tiers } = deps;
  const { layout, place } = openMachineHost(deps);
  const lock = createDirectoryLock(layout.directory);
  const numbers = createMachineNumbers(layout.addresses, { reserved: [hostNumber] });
  const publicAddresses = createPublicAddresses(layout.publicAddresses, deps.publicBlock);
  const nodeImages = createNodeImages({ imagesDir, holder: layout.directory, abilities, environment, log });
  const guestBoots = createGuestBoots({ imagesDir, lock, use: nodeImages.use });
  const images = createIncusImages({ incus, lock, pool: pool(tiers.first), log });
  const packed = createPackedDirectories(join(layout.directory, "packed"), lock);
  const upkeep = createImageUpkeep({
    layout,
    imagesDir,
    now: clock.now,
    log,
    async alsoNeeded() {
      const all = await incus.call<Instance[]>("GET", "/1.0/instances?recursion=1", closing.signal);
      return all.flatMap(({ config }) => lookUp(config, guestKey) ?? []);
    },
    async removeOthers(needed) {
      const newest = nodeImages.facts().flatMap(({ image }) => image ?? []);
      const kept = new Set([...needed, ...newest]);
      await images.keepOnly(kept, clock.now(), closing.signal);
      await packed.keepOnly(kept);
    },
  });
  const materials = createIncusMaterials({ nodeImages, images, code: createMachineCode({ layout, place, log }), lock });
  const power = createInstancePower(incus, clock);
  const closing = new AbortController();
  const edge = edgePlace(deps.addressBlock, publicAddresses.networks, deps.hostPorts);
  const uidOf = () => inside.engine;
  const spares = createSpares({
    layout,
    lock,
    numbers,
    images: nodeImages,
    kinds: deps.spares?.kinds(insideOf(place), dataInDisk) ?? [],
    count: deps.spares?.count ?? 0,
    uidOf,
    disk: "loop",
    tiers,
    bootstrap: createBootstrap({
      place,
      prepare: async (imageRoot, signal) => void (await materials.ensure(imageRoot, signal)),
      log,
    }),
    log,
  });
  const refill = createRefill(spares, log, deps.spares?.quietMs);
  const making = {
    numbers,
    publicAddresses,
    spares,
    disk: "loop",
    tiers,
    uidOf,
    agentUidOf: () => inside.agent,
    addressOf: (number: number) => addressOf(deps.addressBlock, number),
    now: clock.now,
  } as const;
  const form = { incus, materials, node: place.node };
  const forms = {
    container: createContainerForm({ ...form, command: deps.command ?? [...leastInit, ...keeper] }),
    virtual_machine: createVirtualMachineForm({
      ...form,
      packed,
      boot: guestBoots.require,
      command: deps.command ?? keeper,
    }),
  } satisfies Record<InstanceKind, InstanceForm>;
  const instances = createInstances({
    incus,
    power,
    forms,
    imageFor: materials.imageFor,
    layout,
    edge,
    pool,
    addressBlock: deps.addressBlock,
    makeMachine: (spec, image) => makeMachine(spec, layout.machine(spec.id), image, making),
  });

  const inventory = createMachineInventory({ incus, power, layout, log });
  const rootsOf = (tier: string, signal: AbortSignal) =>
    readRootPool(incus, pool(tier), () => largestTreeBytes(imagesDir), signal);

  return {
    name: "incus",
    create: (spec, signal) =>
      lock.hold(spec.id, signal, async () => {
        if (!isMachineId(spec.id)) throw new Error(`${spec.id} cannot be the name of an instance`);
        const before = await inventory.get(spec.id, signal);
        if (before === undefined || before.address === "") {
          // A machine made ahead of demand can wait for a spare disk; the service that takes it later cannot.
          if (before === undefined && spec.ahead && (await spares.isShort(spec))) {
            refill.begin();
            throw new ComputePending("A data disk is made ready for it.");
          }
          requireTier(tiers, spec.storageTier);
          refill.postpone();
          await instances.make(spec, signal);
        }
        return (await inventory.get(spec.id, signal)) as MachineFacts;
      }),
    start: (id, enrollment, signal) =>
      lock.hold(id, signal, async () => {
        refill.postpone();
        const record = await inventory.record(id);
        await forms[kindOf(record.spec)].enroll(layout.machine(id), id, enrollment);
        await incus.settled(instanceName(id), signal);
        const instance = await power.look(id, signal);
        if (instance === undefined) throw new ComputeFailure(`Incus does not know machine ${id} any more.`);
        if (!isUp(instance)) await instances.launch(id, record, instance, signal);
      }),
    // Neither waits for the lock: who stops a machine must not wait for who starts it.
    stop: power.stop,
    async fence(id, signal) {
      await power.stop(id, 0, signal);
      const instance = await power.look(id, signal);
      if (instance === undefined) throw new ComputeFailure(`Incus does not know machine ${id}, which proves nothing.`);
      if (isUp(instance)) throw new ComputeFailure(`Machine ${id} was started again while it was fenced.`);
    },
    resize: (id, plan, signal) =>
      lock.hold(id, signal, async () => {
        const [record, instance] = [await inventory.record(id), await power.look(id, signal)];
        if (instance === undefined) throw new ComputeFailure(`Incus does not know machine ${id} any more.`);
        const resized = { ...plan, rootBytes: Math.max(rootBytesOf(plan), rootBytesOf(record.spec.plan)) };
        await forms[kindOf(record.spec)].resize(resized, instance, signal);
        await writeRecord(layout.machine(id).record, { ...record, spec: { ...record.spec, plan: resized } });
      }),
    replaceImage: (id, image, signal) =>
      lock.hold(id, signal, async () => {
        const record = await inventory.record(id);
        // Now, and not while the machine is down.
        await forms[kindOf(record.spec)].ensure(materials.imageFor(choiceOf(record.spec, image)), signal);
        await writeRecord(layout.machine(id).record, withImage(record, image, clock.now()));
      }),
    growDisk: (id, diskBytes, signal) =>
      lock.hold(id, signal, async () => {
        const record = await inventory.record(id);
        if (diskBytes < record.diskBytes) throw new ComputeFailure("A data disk can only grow.");
        const paths = layout.machine(id);
        await forms[kindOf(record.spec)].growDisk(await power.look(id, signal), paths, diskBytes);
        await writeRecord(paths.record, { ...record, diskBytes, formattedBytes: diskBytes });
      }),
    destroy: (id, signal) =>
      lock.hold(id, signal, async () => {
        const paths = layout.machine(id);
        await power.stop(id, 0, signal);
        if ((await power.look(id, signal)) !== undefined) {
          await incus.run("DELETE", `/1.0/instances/${instanceName(id)}`, signal);
        }
        await unmountDisk(paths);
        await rm(paths.record, { force: true });
        // The number is free only when nothing is left of who had it.
        await removeWithDisk(paths.spare);
        await removeWithDisk(paths.directory);
        for (const number of await numbers.of(id)) await numbers.release(id, number);
        await publicAddresses.release(id);
      }),
    list: inventory.list,
    get: inventory.get,
    watch: inventory.watch,
    async admit(spec, signal) {
      const refused =
        tierRefusal(tiers, spec.storageTier) ??
        (kindOf(spec) === "virtual_machine" ? await whyNoGuests(incus, signal) : undefined);
      if (refused !== undefined) return { admitted: false, reason: refused };
      const addressed = await publicAddresses.admit(spec);
      if (!addressed.admitted) return addressed;
      const machines = await inventory.records();
      const tierDirectory = tiers.directoryOf(spec.storageTier);
      const room = {
        roots: await rootsOf(spec.storageTier, signal),
        directory: tierDirectory ?? layout.machines,
        snapshotBytes: await promisedToSnapshots(layout, tierDirectory),
        youngMachines: countYoung(machines, clock.now()),
      };
      const isMade = machines.some((record) => record.spec.id === spec.id && record.unfinished !== true);
      return admitMachine(spec, isMade, room);
    },
    images: async () => [...nodeImages.facts(), ...guestBoots.facts()],
    guestKernels: createGuestKernels({ layout, lock, inventory, power, forms, clock }),
    snapshots: createMachineSnapshots({
      layout,
      lock,
      tiers,
      recordOf: inventory.record,
      async atRest(id, paths, signal, work) {
        if (isUp(await power.look(id, signal))) throw new ComputeFailure(`Machine ${id} runs.`);
        const { spec } = await inventory.record(id);
        await forms[kindOf(spec)].whileClosed(paths, signal, work);
      },
    }),
    whyNoVirtualMachines: (signal) => whyNoGuests(incus, signal),
    rootsOf,
    edge: createMachineEdge(edge),
    paths: createHostPaths(deps.addressBlock, edge.networks),
    async prepare(signal) {
      const image = nodeImages.find("postgresql", "17");
      if (image !== undefined) await materials.ensure(image.root, AbortSignal.any([signal, closing.signal]));
    },
    refill: (signal) => spares.refill(signal),
    async close() {
      closing.abort();
      upkeep.close();
      await refill.close();
      await incus.close();
    },
  };
}
