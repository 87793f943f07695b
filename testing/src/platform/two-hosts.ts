import { randomBytes } from "node:crypto";
import { systemClock } from "@holdfast/common/clock.ts";
import { silentLog } from "@holdfast/common/log.ts";
import { HostUnreachable } from "@holdfast/compute/compute-failure.ts";
import type { ComputeProvider } from "@holdfast/compute/compute-provider.ts";
import { createHostsProvider, type HostsProvider } from "@holdfast/compute/router/hosts-provider.ts";
import type { SessionFacts } from "@holdfast/controller/fleet/session/session-facts.ts";
import { hostKind, type HostObject, withHostSpec } from "@holdfast/controller/fleet/host/host.ts";
import { createHostLinks, type HostLink } from "@holdfast/controller/fleet/host/host-links.ts";
import { createHostWork } from "@holdfast/controller/fleet/host/host-reconciler.ts";
import type { MachinePlacement } from "@holdfast/controller/fleet/machine/machine-steps.ts";
import { createMachinePlacement } from "@holdfast/controller/fleet/placement/machine-placement.ts";
import { machineKind, type MachineObject, type MachineSpecObject } from "@holdfast/controller/fleet/machine/machine.ts";
import { createMachineWork } from "@holdfast/controller/fleet/machine/machine-reconciler.ts";
import { createRunner, type Runner } from "@holdfast/controller/kernel/runtime/runner.ts";
import { soleOwner } from "../controller/sole-owner.ts";
import { createSealer } from "@holdfast/controller/kernel/secrets/sealer.ts";
import { type Collection, createCollection } from "@holdfast/controller/kernel/store/collection.ts";
import { createEtcdStore } from "@holdfast/controller/kernel/store/etcd-store.ts";
import { retryConflict } from "@holdfast/controller/kernel/store/retry-conflict.ts";
import type { Store } from "@holdfast/controller/kernel/store/store.ts";
import { createUnitOfWork, type UnitOfWork } from "@holdfast/controller/kernel/store/unit-of-work.ts";
import type { Kind } from "@holdfast/controller/kernel/store/kind.ts";
import { uuidv7 } from "uuidv7";
import { expect } from "vitest";
import { startTestEtcd } from "../controller/etcd.ts";
import { machineObject } from "../machines/machine-object.ts";
import { startTestMachines, type TestMachines } from "../machines/process-machines.ts";
import { testOwners } from "../machines/test-owners.ts";
import { readyHost, testHostFacts } from "./ready-host.ts";

/** A controller's view of hosts and machines, with a separate memory. */
export interface HostsController {
  readonly machines: Collection<MachineObject>;
  readonly hosts: Collection<HostObject>;
  readonly provider: HostsProvider;
  readonly placement: MachinePlacement;
  readonly runner: Runner;
}

/** Two hosts of real machines, `a` of the controllers and `b` over a link that can be cut, on one store. */
export interface TwoHosts {
  readonly a: TestMachines;
  readonly b: TestMachines;
  readonly store: Store;
  /** The controller whose reconcilers run. */
  active: HostsController;
  /** True: every call to `b` fails, and no event from it arrives. */
  cut: boolean;
  storeMayLag: boolean;
  /** Sessions of agents, by machine. */
  readonly sessions: Map<string, SessionFacts>;
  begin(): UnitOfWork;
  /** Another controller, whose reconcilers do not run. */
  openController(): Promise<HostsController>;
  /** Creates the object of a machine; returns its id. */
  newMachine(spec?: Partial<MachineSpecObject>): Promise<string>;
  forgetAll(objects: readonly MachineObject[]): Promise<void>;
  changeMachine(id: string, edit: (object: MachineObject) => MachineObject): Promise<void>;
  editHost(id: string, spec: Partial<HostObject["spec"]>): Promise<void>;
  /** Requests the machine's deletion. */
  remove(machineId: string): Promise<void>;
  object(machineId: string): MachineObject | undefined;
  /** Resolves when the machine is in this state; undefined: when its object is absent. */
  becomes(machineId: string, state: string | undefined): Promise<void>;
  hostBecomes(hostId: string, state: string): Promise<void>;
  close(): Promise<void>;
}

const { signal } = new AbortController();

export async function startTwoHosts(): Promise<TwoHosts> {
  const sealer = createSealer({ current: "v1", keys: new Map([["v1", randomBytes(32)]]) });
  const [etcd, a, b] = await Promise.all([
    startTestEtcd(),
    startTestMachines({ loopbackBlock: "127.97" }),
    startTestMachines({ loopbackBlock: "127.98" }),
  ]);
  const store = createEtcdStore({ hosts: [etcd.url], log: silentLog });
  const sessions = new Map<string, SessionFacts>();
  const open: { close(): unknown }[] = [];
  const begin = () => createUnitOfWork(store, { outbox: { admit() {} }, sealer, clock: systemClock, ids: uuidv7 });

  async function openController(): Promise<HostsController> {
    const machines = createCollection(store, machineKind);
    const hosts = createCollection(store, hostKind);
    await Promise.all([machines.ready, hosts.ready]);
    const links = createHostLinks({
      hosts,
      own: new Map([["a", cuttable(a.provider, () => false)]]),
      connect: () => cuttable(b.provider, () => two.cut),
    });
    const provider = createHostsProvider({
      hosts: links.all,
      onHosts: links.subscribe,
      hostOf: (id) => machines.get(id)?.object.spec.hostId,
    });
    const placement = createMachinePlacement({
      hosts,
      machines,
      provider,
      begin,
      clock: systemClock,
      storeMayBeBehind: () => two.storeMayLag,
    });
    const work = createMachineWork({
      provider,
      hosts,
      placement,
      machines,
      owners: testOwners,
      begin,
      sealer,
      clock: systemClock,
      log: silentLog,
      installationId: "i",
      caFingerprint: () => "ff",
      controllers: () => [],
      session: (id) => sessions.get(id),
      onSession: () => ({ close() {} }),
    });
    const probes = createHostWork({
      hosts,
      machines,
      links,
      begin,
      clock: systemClock,
      log: silentLog,
      pollIntervalMs: 100,
    });
    open.push(machines, hosts, links);
    const runner = createRunner({
      loops: [work, probes],
      ownership: soleOwner,
      clock: systemClock,
      log: silentLog,
      random: Math.random,
    });
    return { machines, hosts, provider, placement, runner };
  }

  async function change<R extends HostObject | MachineObject>(
    kind: Kind<R>,
    collection: Collection<R>,
    id: string,
    edit: (object: R) => R,
  ): Promise<void> {
    await retryConflict(signal, async () => {
      const before = await collection.getCurrent(id);
      if (before === undefined) throw new Error("it exists");
      const unit = begin();
      unit.update(kind, before, edit(before.object));
      // Hosts and machines have separate watches: the next request must find this.
      await collection.untilRevision(await unit.commit(), 60_000);
    });
  }

  const two: Omit<TwoHosts, "active"> & { active?: HostsController } = {
    a,
    b,
    store,
    cut: false,
    storeMayLag: false,
    sessions,
    begin,
    openController,
    async newMachine(spec) {
      const object = machineObject(spec);
      const unit = begin();
      unit.create(machineKind, object);
      await unit.commit();
      return object.metadata.id;
    },
    async forgetAll(objects) {
      for (const { metadata } of objects) {
        const stored = await activeController().machines.getCurrent(metadata.id);
        const unit = begin();
        if (stored !== undefined) unit.remove(machineKind, stored);
        await unit.commit();
      }
    },
    changeMachine: (id, edit) => change(machineKind, activeController().machines, id, edit),
    editHost: (id, spec) => change(hostKind, activeController().hosts, id, (object) => withHostSpec(object, spec, 1)),
    remove: (id) =>
      change(machineKind, activeController().machines, id, (object) => ({
        ...object,
        metadata: { ...object.metadata, deletionRequestedAt: 1 },
      })),
    object: (id) => activeController().machines.get(id)?.object,
    becomes: (id, state) => expect.poll(() => two.object(id)?.status.state).toBe(state),
    hostBecomes: (id, state) => expect.poll(() => activeController().hosts.get(id)?.object.status.state).toBe(state),
    async close() {
      await two.active?.runner.stop();
      for (const each of open) each.close();
      await store.close();
      await Promise.all([a.close(), b.close()]);
      await etcd.stop();
    },
  };
  const activeController = () => two.active as HostsController;

  const unit = begin();
  unit.create(hostKind, readyHost("a", { address: "" }));
  unit.create(hostKind, readyHost("b"));
  await unit.commit();
  const first = await openController();
  first.runner.start();
  return Object.assign(two, { active: first });
}

/** A host over a link that can be cut: then every call to it fails, and no event of it arrives. */
function cuttable(provider: ComputeProvider, isCut: () => boolean): HostLink {
  const refused = () => Promise.reject(new HostUnreachable("b", "connection refused"));
  const link: HostLink = { ...provider, facts: async () => testHostFacts, close() {} };
  return new Proxy(link, {
    get(target, name: keyof HostLink) {
      const method = target[name];
      return isCut() && typeof method === "function" && name !== "watch" && name !== "close" ? refused : method;
    },
  });
}
