import { readFileSync } from "node:fs";
import { readdir } from "node:fs/promises";
import { ComputeFailure, ComputePending } from "../compute-failure.ts";
import type { ComputeProvider, MachineFacts, MachineSpec } from "../compute-provider.ts";
import { groupsOf, limitMachine, removeGroups } from "../local/control-groups.ts";
import { createDirectoryLock } from "../local/directory-lock.ts";
import { snapshotsOf } from "../local/disk-snapshots.ts";
import { writeEnrollment } from "../local/enrollment-file.ts";
import { admitForWarmPool, admitDisk, firstBytes, memoryOf, spaceOf } from "../local/free-space.ts";
import { createImageSweep, withImage } from "../local/image-sweep.ts";
import { type MachineHostDeps, openMachineHost } from "../local/machine-host.ts";
import { addressOf, agentUidOf, containerUidOf, createMachineNumbers, uidOf } from "../local/machine-number.ts";
import { type MachineRecord, readRecord, writeRecord } from "../local/machine-record.ts";
import { createMachineSnapshots, pendingSnapshotBytes } from "../local/machine-snapshots.ts";
import { makeMachine, removeMachine } from "../local/make-machine.ts";
import { choiceOf, createNodeImages } from "../local/node-images.ts";
import { type RuntimePaths, runtimePathsOf } from "../local/machine-runtime.ts";
import { createPublicAddresses } from "../local/public-addresses.ts";
import { createRefill } from "../local/refill.ts";
import { createPreparedDisks, type PreparedDiskKind } from "../local/prepared-disks.ts";
import { requireTier, tierRefusal } from "../local/storage-tiers.ts";
import { createBootstrap } from "./bootstrap-disk.ts";
import { growDisk } from "./grow-disk.ts";
import { createMachineCode, storedCode } from "./machine-code.ts";
import { isRunning, readRun } from "./machine-run.ts";
import { watchMachines } from "./machine-watch.ts";
import { createMachineStart } from "./start-machine.ts";
import { isEmpty, stopMachine, whileStopped } from "./stop-machine.ts";

export interface ProcessProviderDeps extends MachineHostDeps {
  /** First two octets of the machines' addresses, such as `127.77`; unique for each directory. */
  readonly loopbackBlock: string;
  /** First program of a machine; the keeper if absent. */
  readonly command?: (runtimePaths: RuntimePaths) => readonly string[];
  /** Data disks prepared in advance; none if absent. */
  readonly preparedDisks?: {
    readonly kinds: (runtimePaths: RuntimePaths) => readonly PreparedDiskKind[];
    readonly count: number;
    /** Idle time before missing disks are prepared, in milliseconds; 3 s if absent. */
    readonly idleMs?: number;
  };
}

/** The process provider, with the methods for the host that it runs on. */
export interface ProcessProvider extends ComputeProvider {
  /** Reason why it has no virtual machines. */
  virtualMachineRefusal(): Promise<string>;
  /** Undefined: roots are in memory and in host files without a guaranteed size. */
  rootStorageOf(): Promise<undefined>;
  /** Prepares missing data disks; resolves immediately if another controller prepares them. */
  refill(signal: AbortSignal): Promise<void>;
  /** Ends background work; machines continue. */
  close(): Promise<void>;
}

/** Time after its creation in which a machine makes its first writes. */
const firstWritesMs = 120_000;

/**
 * Machines as process trees of this host.  Each machine has a directory, a loopback address, separate users (if this
 * process is root), and a root from the node image, in separate namespaces. All state is in the directory and in /proc,
 * none in memory. Files: make-machine.ts creates, start-machine.ts and machine-launch.ts start, stop-machine.ts stops
 * and fences, machine-watch.ts reports changes, prepared-disks.ts has disks ready in advance.
 */
export function createProcessProvider(deps: ProcessProviderDeps): ProcessProvider {
  const { abilities, clock, log, environment, imagesDir, tiers } = deps;
  const added = { ...(deps.additions && { additions: deps.additions }) };
  const { layout, runtime } = openMachineHost(deps);
  const runtimePaths = runtimePathsOf(runtime);
  const uidMap = readFileSync("/proc/self/uid_map", "utf8");
  const uidFor = (number: number) => (process.getuid?.() === 0 ? uidOf(deps.loopbackBlock, number, uidMap) : null);

  if (abilities.groups.version === "none")
    log.warn("machines have no CPU and memory limits", { reason: abilities.groups.reason });

  // A process that left its session is found by the machine's own directory.
  if (abilities.isolation === "none" && tiers.names.some((tier) => tiers.directoryOf(tier) !== undefined))
    throw new Error("HOLDFAST_STORAGE_TIERS: without namespaces a tier cannot have a directory");

  const lock = createDirectoryLock(layout.directory);
  const numbers = createMachineNumbers(layout.addresses);
  const publicAddresses = createPublicAddresses(layout.publicAddresses, deps.publicBlock);
  const images = createNodeImages({ imagesDir, holder: layout.directory, abilities, ...added, environment, log });
  const imageSweep = createImageSweep({ layout, imagesDir, ...added, now: clock.now, log });
  const kinds = deps.preparedDisks?.kinds(runtimePaths) ?? [];
  const code = createMachineCode({ layout, runtime, stored: storedCode(environment), log, removesOld: true });
  const disk = abilities.loop ? "loop" : "directory";
  const preparedDisks = createPreparedDisks({
    layout,
    lock,
    numbers,
    images,
    kinds,
    count: deps.preparedDisks?.count ?? 0,
    uidOf: uidFor,
    disk,
    tiers,
    bootstrap: createBootstrap({ runtime, prepare: code.make, log }),
    log,
  });
  const refill = createRefill(preparedDisks, log, deps.preparedDisks?.idleMs);
  const creation = {
    numbers,
    publicAddresses,
    preparedDisks,
    disk,
    tiers,
    uidOf: uidFor,
    agentUidOf,
    now: clock.now,
    addressOf: (n: number) => addressOf(deps.loopbackBlock, n),
  } as const;

  async function factsOf(id: string): Promise<MachineFacts | undefined> {
    const paths = layout.machine(id);
    const [record, run, snapshots] = await Promise.all([
      readRecord(paths.record),
      readRun(paths.run),
      snapshotsOf(paths.diskFile),
    ]);
    const state = run !== undefined && isRunning(run) ? "running" : "stopped";
    if (record === undefined)
      return {
        id,
        state,
        address: "",
        publicAddress: "",
        diskBytes: 0,
        plan: { vcpu: 0, memoryBytes: 0 },
        image: "",
        hasData: false,
        starts: 0,
        snapshots,
      };
    const { address, publicAddress = address, diskBytes, starts, spec, image = "" } = record;
    // The root is the read-only image.
    const { rootBytes: _, ...plan } = spec.plan;
    return { id, state, address, publicAddress, diskBytes, plan, image, hasData: starts > 0, starts, snapshots };
  }

  async function ids(): Promise<string[]> {
    return (await readdir(layout.machines)).filter(isId);
  }

  async function recordOf(id: string): Promise<MachineRecord> {
    const record = await readRecord(layout.machine(id).record);
    if (record === undefined) throw new ComputeFailure(`Machine ${id} does not exist.`);
    return record;
  }

  const startMachine = createMachineStart({
    ...deps,
    layout,
    runtime,
    images,
    code,
    containerUidOf: (number) => containerUidOf(deps.loopbackBlock, number, uidMap),
  });

  return {
    name: "process",
    create: (spec, signal) =>
      lock.withLock(spec.id, signal, async () => {
        if (!isId(spec.id)) throw new Error(`${spec.id} cannot be the name of a directory`);
        const paths = layout.machine(spec.id);
        if ((await readRecord(paths.record)) === undefined) {
          // A warm-pool machine can wait for a prepared disk; the service that takes it later cannot.
          if (spec.ahead && (await preparedDisks.hasNoneReady(spec))) {
            refill.start();
            throw new ComputePending("A data disk is being prepared for it.");
          }
          requireTier(tiers, spec.storageTier);
          refill.postpone();
          await makeMachine(spec, paths, images.require(spec), creation);
        }
        return (await factsOf(spec.id)) as MachineFacts;
      }),
    start: (id, enrollment, signal) =>
      lock.withLock(id, signal, async () => {
        refill.postpone();
        const record = await recordOf(id);
        const { uid } = record;
        const agent = uid === null ? null : { uid: agentUidOf(uid), gid: uid };
        await writeEnrollment(layout.machine(id), id, enrollment, agent);
        const run = await readRun(layout.machine(id).run);
        if (run === undefined || !isRunning(run)) await startMachine(id, record);
      }),
    // Without the lock, so that a stop does not wait for a start.
    stop: (id, graceMs, signal) => stopMachine(layout.machine(id), graceMs, signal),
    async fence(id, signal) {
      // A machine that is not on this host proves nothing: it may run elsewhere.
      await recordOf(id);
      await stopMachine(layout.machine(id), 0, signal);
      if (!(await isEmpty(layout.machine(id))))
        throw new ComputeFailure(`Machine ${id} was started again while it was fenced.`);
    },
    resize: (id, plan, signal) =>
      lock.withLock(id, signal, async () => {
        const record = await recordOf(id);
        const { record: file, run } = layout.machine(id);
        await writeRecord(file, { ...record, spec: { ...record.spec, plan } });
        const running = await readRun(run);
        if (running !== undefined && isRunning(running)) await limitMachine(abilities.groups, id, plan);
      }),
    replaceImage: (id, image, signal) =>
      lock.withLock(id, signal, async () => {
        const record = await recordOf(id);
        const found = images.require(choiceOf(record.spec, image));
        if (found === undefined)
          throw new ComputeFailure("Engines of the host run here: there is no image to replace.");
        await writeRecord(layout.machine(id).record, withImage(record, found.id, clock.now()));
      }),
    growDisk: (id, diskBytes, signal) =>
      lock.withLock(id, signal, async () => {
        const record = await recordOf(id);
        if (diskBytes < record.diskBytes) throw new ComputeFailure("A data disk can only grow.");
        const paths = layout.machine(id);
        if (record.disk === "directory")
          return writeRecord(paths.record, { ...record, diskBytes, formattedBytes: diskBytes });
        const { formatted } = await growDisk(paths, diskBytes);
        // Recorded last: until then, the caller repeats the growth.
        const formattedBytes = formatted ? diskBytes : record.formattedBytes;
        await writeRecord(paths.record, { ...record, diskBytes, formattedBytes });
      }),
    destroy: (id, signal) =>
      lock.withLock(id, signal, async () => {
        if (!(await ids()).includes(id)) return;
        await stopMachine(layout.machine(id), 0, signal);
        // Groups of a start that was killed before it recorded them.
        await removeGroups(groupsOf(abilities.groups, id).directories);
        await removeMachine(layout, id, creation);
      }),
    async list() {
      const facts = await Promise.all((await ids()).map(factsOf));
      return facts.filter((each) => each !== undefined);
    },
    get: async (id) => ((await ids()).includes(id) ? factsOf(id) : undefined),
    watch: (onChange) => watchMachines(layout, onChange, log),
    async admit(spec: MachineSpec) {
      const refused =
        tierRefusal(tiers, spec.storageTier) ?? (spec.kind === "virtual_machine" ? noVirtualMachines : undefined);
      if (refused !== undefined) return { admitted: false, reason: refused };
      const addressed = await publicAddresses.admit(spec);
      if (!addressed.admitted) return addressed;
      const records = await Promise.all((await ids()).map((id) => readRecord(layout.machine(id).record)));
      const recent = records.filter((record) => record !== undefined && clock.now() - record.createdAt < firstWritesMs);
      const tierDirectory = tiers.directoryOf(spec.storageTier);
      const pendingWriteBytes = recent.length * firstBytes + (await pendingSnapshotBytes(layout, tierDirectory));
      const space = await spaceOf(tierDirectory ?? layout.machines, pendingWriteBytes);
      return spec.ahead ? admitForWarmPool(space, await memoryOf()) : admitDisk(spec.diskBytes, space);
    },
    images: async () => images.facts(),
    snapshots: createMachineSnapshots({ layout, lock, tiers, recordOf, whileStopped }),
    virtualMachineRefusal: async () => noVirtualMachines,
    rootStorageOf: async () => undefined,
    refill: (signal) => preparedDisks.refill(signal),
    async close() {
      imageSweep.close();
      await refill.close();
    },
  };
}

/** Reason for every host of this provider. */
const noVirtualMachines =
  "The process provider has no virtual machines. Hosts of provider incus may; plans of kind container run here.";

/** Ids are names of directories and sockets. */
function isId(id: string): boolean {
  return /^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$/.test(id);
}
