import { readFileSync } from "node:fs";
import { readdir } from "node:fs/promises";
import { ComputeFailure, ComputePending } from "../compute-failure.ts";
import type { ComputeProvider, MachineFacts, MachineSpec } from "../compute-provider.ts";
import { groupsOf, limitMachine, removeGroups } from "../local/control-groups.ts";
import { createDirectoryLock } from "../local/directory-lock.ts";
import { snapshotsOf } from "../local/disk-snapshots.ts";
import { writeEnrollment } from "../local/enrollment-file.ts";
import { admitAhead, admitDisk, firstBytes, memoryOf, spaceOf } from "../local/free-space.ts";
import { createImageUpkeep, withImage } from "../local/image-upkeep.ts";
import { type MachineHostDeps, openMachineHost } from "../local/machine-host.ts";
import { addressOf, agentUidOf, createMachineNumbers, uidOf } from "../local/machine-number.ts";
import { type MachineRecord, readRecord, writeRecord } from "../local/machine-record.ts";
import { createMachineSnapshots, promisedToSnapshots } from "../local/machine-snapshots.ts";
import { makeMachine, removeMachine } from "../local/make-machine.ts";
import { choiceOf, createNodeImages } from "../local/node-images.ts";
import { type Inside, insideOf } from "../local/place.ts";
import { createPublicAddresses } from "../local/public-addresses.ts";
import { createRefill } from "../local/refill.ts";
import { createSpares, type SpareKind } from "../local/spares.ts";
import { requireTier, tierRefusal } from "../local/storage-tiers.ts";
import { createBootstrap } from "./bootstrap-disk.ts";
import { growDisk } from "./grow-disk.ts";
import { createMachineCode } from "./machine-code.ts";
import { isRunning, readRun } from "./machine-run.ts";
import { watchMachines } from "./machine-watch.ts";
import { createMachineStart } from "./start-machine.ts";
import { isEmpty, stopMachine, whileStopped } from "./stop-machine.ts";

export interface ProcessProviderDeps extends MachineHostDeps {
  /** Machines have addresses below it, such as `127.77`. Each directory has a block of its own. */
  readonly loopbackBlock: string;
  /** First program of a machine; the keeper when absent. */
  readonly command?: (inside: Inside) => readonly string[];
  /** Data disks made ahead; none when absent. */
  readonly spares?: {
    readonly kinds: (inside: Inside) => readonly SpareKind[];
    readonly count: number;
    /** Missing ones are made when no machine was for so long; 3 s when absent. */
    readonly quietMs?: number;
  };
}

/** The process provider with what only its host has. */
export interface ProcessProvider extends ComputeProvider {
  /** Why it has no virtual machines. */
  whyNoVirtualMachines(): Promise<string>;
  /** Nowhere: what machines write besides their data is in memory, and in files of the host that nobody is promised room for. */
  rootsOf(): Promise<undefined>;
  /** Makes the spares that are missing; resolves at once when another controller does. */
  refill(signal: AbortSignal): Promise<void>;
  /** Ends what runs in the background here. Machines go on. */
  close(): Promise<void>;
}

const promisedForMs = 120_000;

/**
 * Machines as processes of this host: each has a directory, a loopback address, a user of its own (as root), and a root of
 * its own made from the node image. What is true is in the directory and in /proc; nothing is kept in memory.
 */
export function createProcessProvider(deps: ProcessProviderDeps): ProcessProvider {
  const { abilities, clock, log, environment, imagesDir, tiers } = deps;
  const { layout, place } = openMachineHost(deps);
  const inside = insideOf(place);
  const uidMap = readFileSync("/proc/self/uid_map", "utf8");
  const uidFor = (number: number) => (process.getuid?.() === 0 ? uidOf(deps.loopbackBlock, number, uidMap) : null);

  if (abilities.groups.version === "none")
    log.warn("machines are not held to the CPU and memory of their plans", { reason: abilities.groups.reason });

  // What has left its session is found by the machine's own directory there.
  if (abilities.isolation === "none" && tiers.names.some((tier) => tiers.directoryOf(tier) !== undefined))
    throw new Error("HOLDFAST_STORAGE_TIERS: without namespaces a tier cannot have a directory of its own");

  const lock = createDirectoryLock(layout.directory);
  const numbers = createMachineNumbers(layout.addresses);
  const publicAddresses = createPublicAddresses(layout.publicAddresses, deps.publicBlock);
  const images = createNodeImages({ imagesDir, holder: layout.directory, abilities, environment, log });
  const upkeep = createImageUpkeep({ layout, imagesDir, now: clock.now, log });
  const kinds = deps.spares?.kinds(inside) ?? [];
  const code = createMachineCode({ layout, place, log, removesOld: true });
  const disk = abilities.loop ? "loop" : "directory";
  const spares = createSpares({
    layout,
    lock,
    numbers,
    images,
    kinds,
    count: deps.spares?.count ?? 0,
    uidOf: uidFor,
    disk,
    tiers,
    bootstrap: createBootstrap({ place, prepare: code.make, log }),
    log,
  });
  const refill = createRefill(spares, log, deps.spares?.quietMs);
  const making = {
    numbers,
    publicAddresses,
    spares,
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
    // Its root is the image itself, which nothing can write to.
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

  const startMachine = createMachineStart({ ...deps, layout, place, images, code });

  return {
    name: "process",
    create: (spec, signal) =>
      lock.hold(spec.id, signal, async () => {
        if (!isId(spec.id)) throw new Error(`${spec.id} cannot be the name of a directory`);
        const paths = layout.machine(spec.id);
        if ((await readRecord(paths.record)) === undefined) {
          // A machine made ahead of demand can wait for a spare disk; the service that takes it later cannot.
          if (spec.ahead && (await spares.isShort(spec))) {
            refill.begin();
            throw new ComputePending("A data disk is made ready for it.");
          }
          requireTier(tiers, spec.storageTier);
          refill.postpone();
          await makeMachine(spec, paths, images.require(spec), making);
        }
        return (await factsOf(spec.id)) as MachineFacts;
      }),
    start: (id, enrollment, signal) =>
      lock.hold(id, signal, async () => {
        refill.postpone();
        const record = await recordOf(id);
        const { uid } = record;
        const agent = uid === null ? null : { uid: agentUidOf(uid), gid: uid };
        await writeEnrollment(layout.machine(id), id, enrollment, agent);
        const run = await readRun(layout.machine(id).run);
        if (run === undefined || !isRunning(run)) await startMachine(id, record);
      }),
    // Neither waits for the lock: who stops a machine must not wait for who starts it.
    stop: (id, graceMs, signal) => stopMachine(layout.machine(id), graceMs, signal),
    async fence(id, signal) {
      // Of one that is not here nothing is proven: it may run elsewhere.
      await recordOf(id);
      await stopMachine(layout.machine(id), 0, signal);
      if (!(await isEmpty(layout.machine(id))))
        throw new ComputeFailure(`Machine ${id} was started again while it was fenced.`);
    },
    resize: (id, plan, signal) =>
      lock.hold(id, signal, async () => {
        const record = await recordOf(id);
        const { record: file, run } = layout.machine(id);
        await writeRecord(file, { ...record, spec: { ...record.spec, plan } });
        const running = await readRun(run);
        if (running !== undefined && isRunning(running)) await limitMachine(abilities.groups, id, plan);
      }),
    replaceImage: (id, image, signal) =>
      lock.hold(id, signal, async () => {
        const record = await recordOf(id);
        const found = images.require(choiceOf(record.spec, image));
        if (found === undefined)
          throw new ComputeFailure("Engines of the host run here: there is no image to replace.");
        await writeRecord(layout.machine(id).record, withImage(record, found.id, clock.now()));
      }),
    growDisk: (id, diskBytes, signal) =>
      lock.hold(id, signal, async () => {
        const record = await recordOf(id);
        if (diskBytes < record.diskBytes) throw new ComputeFailure("A data disk can only grow.");
        const paths = layout.machine(id);
        if (record.disk === "directory")
          return writeRecord(paths.record, { ...record, diskBytes, formattedBytes: diskBytes });
        const { formatted } = await growDisk(paths, diskBytes);
        // Last: until it is noted, whoever wants the size asks again.
        const formattedBytes = formatted ? diskBytes : record.formattedBytes;
        await writeRecord(paths.record, { ...record, diskBytes, formattedBytes });
      }),
    destroy: (id, signal) =>
      lock.hold(id, signal, async () => {
        if (!(await ids()).includes(id)) return;
        await stopMachine(layout.machine(id), 0, signal);
        // Those of a start that was killed before it noted them.
        await removeGroups(groupsOf(abilities.groups, id).directories);
        await removeMachine(layout, id, making);
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
      const young = records.filter((record) => record !== undefined && clock.now() - record.createdAt < promisedForMs);
      const tierDirectory = tiers.directoryOf(spec.storageTier);
      const promisedBytes = young.length * firstBytes + (await promisedToSnapshots(layout, tierDirectory));
      const space = await spaceOf(tierDirectory ?? layout.machines, promisedBytes);
      return spec.ahead ? admitAhead(space, await memoryOf()) : admitDisk(spec.diskBytes, space);
    },
    images: async () => images.facts(),
    snapshots: createMachineSnapshots({ layout, lock, tiers, recordOf, atRest: whileStopped }),
    whyNoVirtualMachines: async () => noVirtualMachines,
    rootsOf: async () => undefined,
    refill: (signal) => spares.refill(signal),
    async close() {
      upkeep.close();
      await refill.close();
    },
  };
}

/** Why the provider has none. */
const noVirtualMachines =
  "The process provider has no virtual machines. Hosts of provider incus may; plans of kind container run here.";

/** Ids are names of directories and sockets. */
function isId(id: string): boolean {
  return /^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$/.test(id);
}
