import { chown, mkdir, rm } from "node:fs/promises";
import { dirname } from "node:path";
import type { NodeImage } from "@holdfast/image/node-image.ts";
import { ComputeFailure } from "../compute-failure.ts";
import type { ComputeProvider, MachineFacts, MachineSpec } from "../compute-provider.ts";
import { namesIn } from "../host/atomic-file.ts";
import { writeEnrollment } from "../host/enrollment-file.ts";
import { makeDisk } from "../host/data-disk.ts";
import { createDirectoryLock } from "../host/directory-lock.ts";
import { createMachineCode } from "../process/machine-code.ts";
import { type MachineHostDeps, openMachineHost } from "../host/machine-host.ts";
import { addressOf, createMachineNumbers } from "../host/machine-number.ts";
import { type MachineRecord, readRecord, writeRecord } from "../host/machine-record.ts";
import { createNodeImages, type ImageChoice } from "../host/node-images.ts";
import { codeInside } from "../host/place.ts";
import { admitMachine, roomOf } from "./admission.ts";
import type { IncusClient } from "./incus-client.ts";
import { hostLink, removeLink } from "./host-link.ts";
import { createIncusImages } from "./incus-images.ts";
import { closeEdge, createMachineEdge, edgePlace, hostNumber } from "./machine-edge.ts";
import { imageKey, instanceConfig, inside, instanceName, limitsOf, machineIdOf } from "./instance-config.ts";
import { createInstancePower, type Instance, isUp } from "./instance-power.ts";
import { growMountedDisk, mountDisk, unmountDisk } from "./mounted-disk.ts";

export interface IncusProviderDeps extends MachineHostDeps {
  readonly incus: IncusClient;
  /** First two numbers of the machines' addresses. The very first address is the host's own. */
  readonly addressBlock: string;
  /** Ports of the host that machines may call: of controllers and of DNS. */
  readonly hostPorts: readonly number[];
  /** Storage pool for the machines' roots. */
  readonly pool: string;
  /** So many times the host's memory may be promised to machines. */
  readonly memoryOvercommit: number;
  /** First program of a machine; the keeper when absent. */
  readonly command?: readonly string[];
}

export interface IncusProvider extends ComputeProvider {
  /** Makes what machines are made from, so that the first one does not wait for it. */
  prepare(signal: AbortSignal): Promise<void>;
  close(): Promise<void>;
}

const keeper = ["/holdfast/node/node", "--max-semi-space-size=1", `${codeInside}/keeper.mjs`];
/** Who has the first address of the block. */
const hostOwner = "host";

/**
 * Machines as containers of an Incus daemon on this host. Whether one runs is what Incus says, now; what it is lies in its
 * directory, as with machines of the process provider; nothing is kept in memory.
 */
export function createIncusProvider(deps: IncusProviderDeps): IncusProvider {
  const { incus, abilities, clock, log, environment, imagesDir, pool } = deps;
  const { layout, place } = openMachineHost(deps);
  const lock = createDirectoryLock(layout.directory);
  const numbers = createMachineNumbers(layout.addresses);
  const nodeImages = createNodeImages({ imagesDir, abilities, environment, log });
  const images = createIncusImages({ incus, lock, pool, log });
  const code = createMachineCode({ layout, place, log });
  const power = createInstancePower(incus, clock);
  const closing = new AbortController();
  const edge = edgePlace(deps.addressBlock, deps.hostPorts);

  async function get(id: string, signal: AbortSignal): Promise<MachineFacts | undefined> {
    const instance = await power.look(id, signal);
    const record = await readRecord(layout.machine(id).record);
    if (instance === undefined && record === undefined && !(await directories()).includes(id)) return undefined;
    return factsOf(id, instance, record);
  }

  async function directories(): Promise<string[]> {
    return (await namesIn(layout.machines)).filter(isId);
  }

  async function recordOf(id: string): Promise<MachineRecord> {
    const record = await readRecord(layout.machine(id).record);
    if (record === undefined) throw new ComputeFailure(`Machine ${id} does not exist.`);
    return record;
  }

  /** What an instance is made from, made first where it is missing. */
  async function materials(imageRoot: string, signal: AbortSignal): Promise<{ image: string; code: string }> {
    const [image] = await Promise.all([
      images.ensure(imageRoot, signal),
      lock.hold("code", signal, () => code.make(imageRoot, signal)),
    ]);
    const directory = await code.openTo(inside.agent);
    if (directory === undefined) throw new ComputeFailure("The code of machines could not be made; the log says why.");
    return { image, code: directory };
  }

  function imageOf(choice: ImageChoice): NodeImage {
    const image = nodeImages.require(choice);
    if (image === undefined) throw new ComputeFailure("Machines of Incus need a node image.");
    return image;
  }

  async function make(spec: MachineSpec, signal: AbortSignal): Promise<void> {
    const before = await readRecord(layout.machine(spec.id).record);
    const image = imageOf({ ...spec, ...(before?.image !== undefined && { image: before.image }) });
    const made = await materials(image.root, signal);
    // Somebody who gave up waiting may have begun it: it is being made all the same.
    await incus.settled(instanceName(spec.id), signal);
    const paths = layout.machine(spec.id);
    await mkdir(paths.state, { recursive: true, mode: 0o700 });
    await chown(paths.state, inside.agent, inside.engine);
    await numbers.assign(hostNumber, hostOwner, paths.directory);
    const number = (await numbers.of(spec.id))[0] ?? (await numbers.claim(spec.id, paths.directory));
    // An instance that Incus has lost is made again around the data that it had.
    if (before === undefined || before.starts === 0) {
      await unmountDisk(paths);
      await makeDisk(paths, "loop", spec.diskBytes, null, image.root);
    }
    await mountDisk(paths);
    const address = addressOf(deps.addressBlock, number);
    const instance = instanceConfig({
      ...made,
      nodeImage: image.id,
      machineId: spec.id,
      installationId: spec.installationId,
      pool,
      plan: spec.plan,
      address,
      hostAddress: edge.hostAddress,
      hostName: hostLink(deps.addressBlock, number),
      paths,
      node: place.node,
      command: deps.command ?? keeper,
    });
    if ((await power.look(spec.id, signal)) === undefined) await power.create(instance, signal);
    if (before !== undefined && before.starts > 0) return;
    const { diskBytes } = spec;
    const record = { spec, number, address, uid: inside.engine, diskBytes, formattedBytes: diskBytes, starts: 0 };
    await writeRecord(paths.record, { ...record, disk: "loop", image: image.id, createdAt: clock.now() });
  }

  async function launch(id: string, record: MachineRecord, instance: Instance, signal: AbortSignal): Promise<void> {
    const paths = layout.machine(id);
    await closeEdge(edge, signal);
    await Promise.all([
      mountDisk(paths),
      removeLink(hostLink(deps.addressBlock, record.number)),
      refreshCode(instance, signal),
    ]);
    await refreshImage(record, instance, signal);
    await writeRecord(paths.record, { ...record, starts: record.starts + 1 });
    await power.start(id, signal);
  }

  /** A machine starts with today's code and node, whatever it was made with. */
  async function refreshCode({ name, devices }: Instance, signal: AbortSignal): Promise<void> {
    const sources = { code: await code.openTo(inside.agent), node: dirname(place.node) };
    const stale = Object.entries(sources).filter(([key, source]) => source && devices[key]?.["source"] !== source);
    if (stale.length === 0) return;
    const fresh = stale.map(([key, source]) => [key, { ...devices[key], source }]);
    await incus.call("PATCH", `/1.0/instances/${name}`, signal, { devices: Object.fromEntries(fresh) });
  }

  /** Makes the root anew when another image was put under the data disk. */
  async function refreshImage(record: MachineRecord, { name, config }: Instance, signal: AbortSignal): Promise<void> {
    const { image } = record;
    if (image === undefined || config[imageKey] === image) return;
    const { root } = imageOf({ ...record.spec, image });
    const source = { type: "image", fingerprint: await images.ensure(root, signal) };
    await incus.run("POST", `/1.0/instances/${name}/rebuild`, signal, { source });
    await incus.call("PATCH", `/1.0/instances/${name}`, signal, { config: { [imageKey]: image } });
  }

  return {
    name: "incus",
    create: (spec, signal) =>
      lock.hold(spec.id, signal, async () => {
        if (!isId(spec.id)) throw new Error(`${spec.id} cannot be the name of an instance`);
        const before = await get(spec.id, signal);
        if (before === undefined || before.address === "") await make(spec, signal);
        return (await get(spec.id, signal)) as MachineFacts;
      }),
    start: (id, enrollment, signal) =>
      lock.hold(id, signal, async () => {
        const record = await recordOf(id);
        const agent = { uid: inside.agent, gid: inside.engine };
        await writeEnrollment(layout.machine(id).state, id, enrollment, agent);
        await incus.settled(instanceName(id), signal);
        const instance = await power.look(id, signal);
        if (instance === undefined) throw new ComputeFailure(`Incus does not know machine ${id} any more.`);
        if (!isUp(instance)) await launch(id, record, instance, signal);
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
        const record = await recordOf(id);
        await incus.call("PATCH", `/1.0/instances/${instanceName(id)}`, signal, { config: limitsOf(plan) });
        await writeRecord(layout.machine(id).record, { ...record, spec: { ...record.spec, plan } });
      }),
    replaceImage: (id, image, signal) =>
      lock.hold(id, signal, async () => {
        const record = await recordOf(id);
        const { root } = imageOf({ ...record.spec, image });
        // Now, and not while the machine is down.
        await images.ensure(root, signal);
        await writeRecord(layout.machine(id).record, { ...record, image });
      }),
    growDisk: (id, diskBytes, signal) =>
      lock.hold(id, signal, async () => {
        const record = await recordOf(id);
        if (diskBytes < record.diskBytes) throw new ComputeFailure("A data disk can only grow.");
        const paths = layout.machine(id);
        await growMountedDisk(paths, diskBytes);
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
        await rm(paths.directory, { recursive: true, force: true });
        for (const number of await numbers.of(id)) await numbers.release(id, number);
      }),
    async list(signal) {
      const instances = await incus.call<Instance[]>("GET", "/1.0/instances?recursion=1", signal);
      const all = new Map<string, Instance | undefined>((await directories()).map((id) => [id, undefined]));
      for (const instance of instances) {
        const id = machineIdOf(instance.name);
        if (id !== undefined) all.set(id, instance);
      }
      return Promise.all(
        [...all].map(async ([id, instance]) => factsOf(id, instance, await readRecord(layout.machine(id).record))),
      );
    },
    get,
    watch(onChange) {
      return incus.events.subscribe({
        event(event) {
          if (event.type !== "lifecycle" || !event.metadata.action.startsWith("instance-")) return;
          const id = machineIdOf(event.metadata.name ?? "");
          if (id !== undefined) onChange(id);
        },
        opened() {
          directories().then(
            (ids) => ids.forEach(onChange),
            (error: Error) => log.error("machines not listed", { error: error.message }),
          );
        },
      });
    },
    async admit(spec, signal) {
      const records = await Promise.all((await directories()).map((id) => readRecord(layout.machine(id).record)));
      const machines = records.filter((record) => record !== undefined);
      const { memoryOvercommit } = deps;
      const place = { pool, memoryOvercommit, directory: layout.machines, now: clock.now() };
      return admitMachine(spec, await roomOf(incus, machines, place, signal));
    },
    images: async () => nodeImages.facts(),
    edge: createMachineEdge(edge),
    async prepare(signal) {
      const image = nodeImages.find("postgresql", "17");
      if (image !== undefined) await materials(image.root, AbortSignal.any([signal, closing.signal]));
    },
    async close() {
      closing.abort();
      await incus.close();
    },
  };
}

/** What is half made, or half lost, shows in its missing address. */
function factsOf(id: string, instance: Instance | undefined, record: MachineRecord | undefined): MachineFacts {
  const { starts, diskBytes, spec } = record ?? { starts: 0, diskBytes: 0, spec: undefined };
  return {
    id,
    state: isUp(instance) ? "running" : "stopped",
    address: instance === undefined ? "" : (record?.address ?? ""),
    diskBytes,
    plan: spec?.plan ?? { vcpu: 0, memoryBytes: 0 },
    image: record?.image ?? "",
    hasData: starts > 0,
    starts,
  };
}

/** Ids are names of directories and, behind three letters, of instances. */
function isId(id: string): boolean {
  return /^[A-Za-z0-9][A-Za-z0-9-]{0,58}[A-Za-z0-9]$/.test(id);
}
