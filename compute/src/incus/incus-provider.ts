import { rm } from "node:fs/promises";
import { join } from "node:path";
import { engineCatalog } from "@holdfast/common/engine-catalog/engine-catalog.ts";
import { lookUp } from "@holdfast/common/look-up.ts";
import { largestTreeBytes } from "@holdfast/image/image-manifest.ts";
import { ComputeFailure, ComputePending } from "../compute-failure.ts";
import { type ComputeProvider, type InstanceKind, type MachineFacts, rootBytesOf } from "../compute-provider.ts";
import { removeWithDisk } from "../local/data-disk.ts";
import { createDirectoryLock } from "../local/directory-lock.ts";
import { createGuestBoots } from "../local/guest-boots.ts";
import type { RootStorage } from "../local/host-facts.ts";
import { createImageSweep, withImage } from "../local/image-sweep.ts";
import { type MachineHostDeps, openMachineHost } from "../local/machine-host.ts";
import { addressOf, createMachineNumbers } from "../local/machine-number.ts";
import { writeRecord } from "../local/machine-record.ts";
import { createMachineSnapshots, pendingSnapshotBytes } from "../local/machine-snapshots.ts";
import { makeMachine } from "../local/make-machine.ts";
import { choiceOf, createNodeImages } from "../local/node-images.ts";
import {
  machineCodeDirectory,
  type RuntimePaths,
  runtimePathsOf,
  restrictedInitCommand,
} from "../local/machine-runtime.ts";
import { createPublicAddresses } from "../local/public-addresses.ts";
import { createRefill } from "../local/refill.ts";
import { createPreparedDisks, type PreparedDiskKind } from "../local/prepared-disks.ts";
import { requireTier, tierRefusal } from "../local/storage-tiers.ts";
import { createBootstrap } from "../process/bootstrap-disk.ts";
import { createMachineCode, storedCode } from "../process/machine-code.ts";
import { admitMachine, countRecent, detectGuestRefusal } from "./admission.ts";
import { createContainerTemplate } from "./container-template.ts";
import { createPackedDirectories } from "./guest-disks.ts";
import { createGuestKernels } from "./guest-kernels.ts";
import { createHostRoutes } from "./host-routes.ts";
import type { IncusClient } from "./incus-client.ts";
import { createIncusImages } from "./incus-images.ts";
import { createInstanceSources } from "./instance-sources.ts";
import { dataInDisk, guestKey, instanceUsers, instanceName } from "./instance-config.ts";
import type { InstanceTemplate } from "./instance-template.ts";
import { createInstancePower, type Instance, isUp } from "./instance-power.ts";
import { createInstances, kindOf } from "./instances.ts";
import { createMachineEdge, edgeConfig, hostNumber } from "./machine-edge.ts";
import { createMachineInventory, isMachineId } from "./machine-inventory.ts";
import { unmountDisk } from "./mounted-disk.ts";
import { readRootPool } from "./root-pool.ts";
import { createVirtualMachineTemplate } from "./virtual-machine-template.ts";

export interface IncusProviderDeps extends MachineHostDeps {
  readonly incus: IncusClient;
  /** First two octets of the machines' addresses, such as `10.77`. The first address is the host's. */
  readonly addressBlock: string;
  /** Ports of the host that machines may call: ports of controllers and of DNS. */
  readonly hostPorts: readonly number[];
  /** Storage pool for the roots of a tier's machines. */
  readonly pool: (tier: string) => string;
  /** First program of a machine, as in a container; the keeper if absent. */
  readonly command?: readonly string[];
  /** Data disks prepared in advance; none if absent. */
  readonly preparedDisks?: {
    readonly kinds: (runtimePaths: RuntimePaths, data: string) => readonly PreparedDiskKind[];
    readonly count: number;
    /** Idle time before missing disks are prepared, in milliseconds; 3 s if absent. */
    readonly idleMs?: number;
  };
}

export interface IncusProvider extends ComputeProvider {
  /** Reason why no virtual machine can be created here; undefined if one can. */
  virtualMachineRefusal(signal: AbortSignal): Promise<string | undefined>;
  /** Storage of the roots of a tier's machines, with its free space. */
  rootStorageOf(tier: string, signal: AbortSignal): Promise<RootStorage>;
  /** Builds the sources of machines in advance, so that the first machine does not wait. */
  prepare(signal: AbortSignal): Promise<void>;
  /** Prepares missing data disks; resolves immediately if another controller prepares them. */
  refill(signal: AbortSignal): Promise<void>;
  close(): Promise<void>;
}

const keeper = ["/holdfast/node/node", "--max-semi-space-size=1", `${machineCodeDirectory}/keeper.mjs`];

/**
 * Machines as containers and virtual machines of an Incus daemon on this host.
 *
 * Each call queries the daemon for the machine's state. Record, state and data disk of a machine are in its directory,
 * as with the process provider, and no state is in memory. Files: instances.ts creates and starts instances,
 * instance-template.ts and its two implementations have the differences of containers and virtual machines,
 * instance-power.ts starts and stops, machine-inventory.ts lists, machine-edge.ts filters packets, host-routes.ts
 * routes to other hosts.
 */
export function createIncusProvider(deps: IncusProviderDeps): IncusProvider {
  const { incus, abilities, clock, log, environment, imagesDir, pool, tiers } = deps;
  const added = { ...(deps.additions && { additions: deps.additions }) };
  const { layout, runtime } = openMachineHost(deps);
  const lock = createDirectoryLock(layout.directory);
  const numbers = createMachineNumbers(layout.addresses, { reserved: [hostNumber] });
  const publicAddresses = createPublicAddresses(layout.publicAddresses, deps.publicBlock);
  const nodeImages = createNodeImages({ imagesDir, holder: layout.directory, abilities, ...added, environment, log });
  const guestBoots = createGuestBoots({ imagesDir, lock, use: nodeImages.use });
  const images = createIncusImages({ incus, lock, pool: pool(tiers.first), log });
  const packed = createPackedDirectories(join(layout.directory, "packed"), lock);
  const imageSweep = createImageSweep({
    layout,
    imagesDir,
    ...added,
    now: clock.now,
    log,
    async alsoNeeded() {
      const all = await incus.call<Instance[]>("GET", "/1.0/instances?recursion=1", closing.signal);
      return all.flatMap(({ config }) => lookUp(config, guestKey) ?? []);
    },
    async removeOthers(needed) {
      const newest = nodeImages.facts().flatMap(({ image }) => image ?? []);
      const retained = new Set([...needed, ...newest]);
      await images.keepOnly(retained, clock.now(), closing.signal);
      await packed.keepOnly(retained);
    },
  });
  const sources = createInstanceSources({
    nodeImages,
    images,
    code: createMachineCode({ layout, runtime, stored: storedCode(deps.environment), log }),
    lock,
  });
  const power = createInstancePower(incus, clock);
  const closing = new AbortController();
  const edge = edgeConfig(deps.addressBlock, publicAddresses.networks, deps.hostPorts);
  const uidOf = () => instanceUsers.engine;
  const preparedDisks = createPreparedDisks({
    layout,
    lock,
    numbers,
    images: nodeImages,
    kinds: deps.preparedDisks?.kinds(runtimePathsOf(runtime), dataInDisk) ?? [],
    count: deps.preparedDisks?.count ?? 0,
    uidOf,
    disk: "loop",
    tiers,
    bootstrap: createBootstrap({
      runtime,
      prepare: async (imageRoot, signal) => void (await sources.ensure(imageRoot, signal)),
      log,
    }),
    log,
  });
  const refill = createRefill(preparedDisks, log, deps.preparedDisks?.idleMs);
  const creation = {
    numbers,
    publicAddresses,
    preparedDisks,
    disk: "loop",
    tiers,
    uidOf,
    agentUidOf: () => instanceUsers.agent,
    addressOf: (number: number) => addressOf(deps.addressBlock, number),
    now: clock.now,
  } as const;
  const template = { incus, sources, node: runtime.node };
  const templates = {
    container: createContainerTemplate({ ...template, command: deps.command ?? [...restrictedInitCommand, ...keeper] }),
    virtual_machine: createVirtualMachineTemplate({
      ...template,
      packed,
      boot: guestBoots.require,
      command: deps.command ?? keeper,
    }),
  } satisfies Record<InstanceKind, InstanceTemplate>;
  const instances = createInstances({
    incus,
    power,
    templates,
    imageFor: sources.imageFor,
    layout,
    edge,
    pool,
    addressBlock: deps.addressBlock,
    makeMachine: (spec, image) => makeMachine(spec, layout.machine(spec.id), image, creation),
  });

  const inventory = createMachineInventory({ incus, power, layout, log });
  const rootStorageOf = (tier: string, signal: AbortSignal) =>
    readRootPool(incus, pool(tier), () => largestTreeBytes(imagesDir), signal);

  return {
    name: "incus",
    create: (spec, signal) =>
      lock.withLock(spec.id, signal, async () => {
        if (!isMachineId(spec.id)) throw new Error(`${spec.id} cannot be the name of an instance`);
        const before = await inventory.get(spec.id, signal);
        if (before === undefined || before.address === "") {
          // A warm-pool machine can wait for a prepared disk; the service that takes it later cannot.
          if (before === undefined && spec.ahead && (await preparedDisks.hasNoneReady(spec))) {
            refill.start();
            throw new ComputePending("A data disk is being prepared for it.");
          }
          requireTier(tiers, spec.storageTier);
          refill.postpone();
          await instances.make(spec, signal);
        }
        return (await inventory.get(spec.id, signal)) as MachineFacts;
      }),
    start: (id, enrollment, signal) =>
      lock.withLock(id, signal, async () => {
        refill.postpone();
        const record = await inventory.record(id);
        await templates[kindOf(record.spec)].enroll(layout.machine(id), id, enrollment);
        await incus.settled(instanceName(id), signal);
        const instance = await power.find(id, signal);
        if (instance === undefined) throw new ComputeFailure(`Incus has no instance of machine ${id} any more.`);
        if (!isUp(instance)) await instances.launch(id, record, instance, signal);
      }),
    // Without the lock, so that a stop does not wait for a start.
    stop: power.stop,
    async fence(id, signal) {
      await power.stop(id, 0, signal);
      const instance = await power.find(id, signal);
      if (instance === undefined)
        throw new ComputeFailure(`Incus has no instance of machine ${id}, so it is not proven to be stopped.`);
      if (isUp(instance)) throw new ComputeFailure(`Machine ${id} was started again while it was fenced.`);
    },
    resize: (id, plan, signal) =>
      lock.withLock(id, signal, async () => {
        const [record, instance] = [await inventory.record(id), await power.find(id, signal)];
        if (instance === undefined) throw new ComputeFailure(`Incus has no instance of machine ${id} any more.`);
        const resized = { ...plan, rootBytes: Math.max(rootBytesOf(plan), rootBytesOf(record.spec.plan)) };
        await templates[kindOf(record.spec)].resize(resized, instance, signal);
        await writeRecord(layout.machine(id).record, { ...record, spec: { ...record.spec, plan: resized } });
      }),
    replaceImage: (id, image, signal) =>
      lock.withLock(id, signal, async () => {
        const record = await inventory.record(id);
        // Builds the sources now, not while the machine is stopped.
        await templates[kindOf(record.spec)].ensure(sources.imageFor(choiceOf(record.spec, image)), signal);
        await writeRecord(layout.machine(id).record, withImage(record, image, clock.now()));
      }),
    growDisk: (id, diskBytes, signal) =>
      lock.withLock(id, signal, async () => {
        const record = await inventory.record(id);
        if (diskBytes < record.diskBytes) throw new ComputeFailure("A data disk can only grow.");
        const paths = layout.machine(id);
        await templates[kindOf(record.spec)].growDisk(await power.find(id, signal), paths, diskBytes);
        await writeRecord(paths.record, { ...record, diskBytes, formattedBytes: diskBytes });
      }),
    destroy: (id, signal) =>
      lock.withLock(id, signal, async () => {
        const paths = layout.machine(id);
        await power.stop(id, 0, signal);
        if ((await power.find(id, signal)) !== undefined) {
          await incus.run("DELETE", `/1.0/instances/${instanceName(id)}`, signal);
        }
        await unmountDisk(paths);
        await rm(paths.record, { force: true });
        // The number becomes free only after all data of its owner are removed.
        await removeWithDisk(paths.preparedDisk);
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
        (kindOf(spec) === "virtual_machine" ? await detectGuestRefusal(incus, signal) : undefined);
      if (refused !== undefined) return { admitted: false, reason: refused };
      const addressed = await publicAddresses.admit(spec);
      if (!addressed.admitted) return addressed;
      const machines = await inventory.records();
      const tierDirectory = tiers.directoryOf(spec.storageTier);
      const capacity = {
        roots: await rootStorageOf(spec.storageTier, signal),
        directory: tierDirectory ?? layout.machines,
        snapshotBytes: await pendingSnapshotBytes(layout, tierDirectory),
        recentMachines: countRecent(machines, clock.now()),
      };
      const exists = machines.some((record) => record.spec.id === spec.id && record.unfinished !== true);
      return admitMachine(spec, exists, capacity);
    },
    images: async () => [...nodeImages.facts(), ...guestBoots.facts()],
    guestKernels: createGuestKernels({ layout, lock, inventory, power, templates, clock }),
    snapshots: createMachineSnapshots({
      layout,
      lock,
      tiers,
      recordOf: inventory.record,
      async whileStopped(id, paths, signal, work) {
        if (isUp(await power.find(id, signal))) throw new ComputeFailure(`Machine ${id} runs.`);
        const { spec } = await inventory.record(id);
        await templates[kindOf(spec)].whileDiskClosed(paths, signal, work);
      },
    }),
    virtualMachineRefusal: (signal) => detectGuestRefusal(incus, signal),
    rootStorageOf,
    edge: createMachineEdge(edge),
    routes: createHostRoutes(deps.addressBlock, edge.networks),
    async prepare(signal) {
      for (const { engine, defaultVersion } of engineCatalog.filter(({ hasWarmPool }) => hasWarmPool)) {
        const image = nodeImages.find(engine, defaultVersion);
        if (image !== undefined) await sources.ensure(image.root, AbortSignal.any([signal, closing.signal]));
      }
    },
    refill: (signal) => preparedDisks.refill(signal),
    async close() {
      closing.abort();
      imageSweep.close();
      await refill.close();
      await incus.close();
    },
  };
}
