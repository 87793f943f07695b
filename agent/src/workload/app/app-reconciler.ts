import { setTimeout as sleep } from "node:timers/promises";
import { equals } from "@bufbuild/protobuf";
import { inBackground } from "@holdfast/common/background.ts";
import type { Log } from "@holdfast/common/log.ts";
import {
  type AppSpec,
  type Release,
  ReleaseSchema,
  type WorkloadSpec,
} from "@holdfast/proto/holdfast/agent/v1/task_pb.ts";
import type { WorkloadStatus } from "../workload-status.ts";
import { type ReconcileSignals, WorkloadEnded } from "../workload-supervisor.ts";
import { type AppFront, slotAddress } from "./app-front.ts";
import type { AppRelay } from "./app-relay.ts";
import { appOf } from "./app-spec.ts";
import { type ContainerNetwork, type Containers, ImageRefused } from "./containers.ts";
import type { ProgramEnds } from "./program-ends.ts";
import { probeReadiness } from "./readiness-probe.ts";
import type { ReleaseStates } from "./release-states.ts";
import { type Slot, type SlotFile, type SlotName, type Slots, slotNames } from "./slots.ts";

export interface AppReconciler {
  /** Resolves once the machine matches the spec; rejects with a message for users. */
  converge(spec: WorkloadSpec, signals: ReconcileSignals): Promise<void>;
  /** True while the front and the release that serves run. */
  isRunning(): boolean;
  /** The release that serves, and where; undefined before the first one is ready. */
  serving(): { readonly release: Release; readonly address: string; readonly port: number } | undefined;
}

export interface AppReconcilerDeps {
  readonly slotFile: SlotFile;
  readonly containers: Containers;
  readonly front: AppFront;
  readonly relay: AppRelay;
  readonly states: ReleaseStates;
  readonly ends: ProgramEnds;
  readonly status: Pick<WorkloadStatus, "setSpec" | "setState" | "setCheck" | "removeChecks" | "state">;
  /** The last lines that a release printed. */
  readonly lastLines: (releaseId: string) => Promise<string[]>;
  readonly now: () => number;
  readonly log: Pick<Log, "error">;
}

const pollMs = 100;
const drainPollMs = 200;
/** Delay of a restart of the serving release while another one is deployed, from the second one on. */
const firstRestartMs = 1_000;
const maxRestartMs = 30_000;

/**
 * Converges the slots to the spec's releases. A release is stored in a slot before anything of it starts, so that an
 * agent that ends at any line is continued by the next one. The order is what makes a deployment safe: the serving
 * release runs first; a new one starts beside it; the front switches once that is ready; then the old one is drained,
 * stopped and deleted. A release that never becomes ready is not started again, and disturbs no other. A serving
 * release that ends during a deployment is started beside it, so a deployment does not wait for one that always ends.
 */
export function createAppReconciler(deps: AppReconcilerDeps): AppReconciler {
  const { slotFile, containers, front, relay, states, ends, status, lastLines, now, log } = deps;
  let slots: Slots = {};
  let network: ContainerNetwork = { address: "", endpoints: [], authorities: "" };
  /** Start time of each slot's run that was found ready. */
  const ready = new Map<SlotName, number>();
  /** True while a release starts beside the one that serves. */
  let isDeploying = false;
  containers.onEnd((name) => inBackground(log, "note the end of a program", noteEnd(name)));

  /** Records the end of a release that is started again, and reports the reason with the state. */
  async function noteEnd(name: SlotName): Promise<void> {
    const slot = slots[name];
    if (slot?.wasReady !== true || slot.drainUntil !== undefined) return;
    const reason = await ends.note(name, exitOf(name));
    status.setCheck(ends.check());
    if (name === slots.serving && status.state === "starting") status.setState("starting", reason);
  }

  async function save(next: Slots): Promise<void> {
    await slotFile.save(next);
    slots = next;
    states.setSlots(slots);
  }

  const saveSlot = (name: SlotName, slot: Slot) => save({ ...slots, [name]: slot });
  const slotOf = (releaseId: string) => slotNames.find((name) => slots[name]?.release.id === releaseId);
  const failureOf = (releaseId: string) => {
    const name = slotOf(releaseId);
    return name && slots[name]?.failure;
  };
  const isReady = (name: SlotName) =>
    containers.isRunning(name) && ready.get(name) === containers.status(name)?.startedAt;

  async function stopAll(): Promise<void> {
    status.setState("stopping");
    status.removeChecks();
    const serving = slots.serving && slots[slots.serving];
    await front.stop((serving?.release.drainSeconds ?? 0) * 1_000);
    await Promise.all(slotNames.map((name) => containers.stop(name)));
    await relay.stop();
    status.setState("stopped");
  }

  /** Stops releases whose restart counter is lower, and clears their failures. */
  async function applyRestarts(app: AppSpec, restartCount: bigint): Promise<void> {
    for (const { id } of app.releases) {
      const name = slotOf(id);
      const slot = name && slots[name];
      if (name === undefined || slot === undefined || slot.restartCount >= restartCount) continue;
      await containers.stop(name);
      const { failure: _, ...rest } = slot;
      await saveSlot(name, { ...rest, restartCount });
    }
  }

  async function start(name: SlotName, { release }: Slot, signal: AbortSignal): Promise<void> {
    if (containers.isRunning(name)) return;
    states.setProgress(release.id, "pulling");
    const image = await containers.unpack(release, signal);
    signal.throwIfAborted();
    states.setProgress(release.id, "starting");
    await ends.started(name);
    await containers.start(name, release, image, network);
  }

  /** Waits until the release is ready; throws the reason if it ends, or is not ready in its time. */
  async function untilReady(name: SlotName, { release }: Slot, signal: AbortSignal): Promise<void> {
    const { startedAt = 0 } = containers.status(name) ?? {};
    const deadline = startedAt + release.startTimeoutSeconds * 1_000;
    for (;;) {
      const target = {
        ...slotAddress(network.address, name),
        path: release.healthCheckPath,
        programPort: release.port,
      };
      const reason = await probeReadiness(target, signal);
      signal.throwIfAborted();
      if (!containers.isRunning(name)) throw new Error(await ends.beforeReady(name, exitOf(name)));
      if (reason === undefined) break;
      if (now() >= deadline)
        throw new Error(`The release is not ready after ${release.startTimeoutSeconds} seconds: ${reason}`);
      await sleep(pollMs, undefined, { signal });
    }
    ready.set(name, startedAt);
  }

  const exitOf = (name: SlotName) => containers.status(name)?.exit ?? null;

  /**
   * Runs the release in the slot until it is ready. A release that never was ready fails for good; an image that may be
   * pulled later is not such a failure.
   */
  async function bringUp(name: SlotName, signal: AbortSignal): Promise<void> {
    const slot = slots[name];
    if (slot === undefined || slot.failure !== undefined) return;
    try {
      await start(name, slot, signal);
    } catch (error) {
      signal.throwIfAborted();
      if (slot.wasReady || !(error instanceof ImageRefused)) throw error;
      return fail(name, slot, error);
    }
    if (isReady(name)) return states.setProgress(slot.release.id, "ready");
    states.setProgress(slot.release.id, "starting");
    try {
      await untilReady(name, slot, signal);
    } catch (error) {
      signal.throwIfAborted();
      await containers.stop(name);
      if (slot.wasReady) throw error;
      return fail(name, slot, error);
    }
    if (!slot.wasReady) await saveSlot(name, { ...slot, wasReady: true });
    states.setProgress(slot.release.id, "ready");
  }

  async function fail(name: SlotName, slot: Slot, error: unknown): Promise<void> {
    const reason = error instanceof Error ? error.message : String(error);
    await saveSlot(name, { ...slot, failure: { reason, lastLines: await lastLines(slot.release.id) } });
  }

  function reportRunning(): void {
    status.setState("running");
    status.setCheck({ name: "liveness", status: "healthy", reason: "" });
    status.setCheck(ends.check());
  }

  /** Starts the serving release again whenever it ends, until the signal. */
  async function keepServing(signal: AbortSignal): Promise<void> {
    for (let restarts = 0; !signal.aborted; ) {
      const name = slots.serving;
      if (name !== undefined && !isReady(name)) {
        if (!containers.isRunning(name)) {
          const delayMs = restarts === 0 ? 0 : Math.min(firstRestartMs * 2 ** (restarts - 1), maxRestartMs);
          restarts += 1;
          await sleep(delayMs, undefined, { signal }).catch(() => undefined);
        }
        // A release that does not become ready is tried again.
        if (!signal.aborted) await bringUp(name, signal).catch(() => undefined);
        if (!signal.aborted && isReady(name)) reportRunning();
      }
      await sleep(pollMs, undefined, { signal }).catch(() => undefined);
    }
  }

  /** Gives a slot to the release, unless it has one; false while none is free. */
  async function assign(release: Release, restartCount: bigint): Promise<boolean> {
    const name = slotOf(release.id);
    const slot = name && slots[name];
    if (name === undefined || slot === undefined) {
      const free = slotNames.find((each) => slots[each] === undefined);
      if (free === undefined) return false;
      await saveSlot(free, { release, restartCount, wasReady: false });
      return true;
    }
    const { drainUntil, ...rest } = slot;
    // A release that the spec names again during its drain keeps running. The registry's credentials may be newer ones.
    if (drainUntil !== undefined || !equals(ReleaseSchema, slot.release, release))
      await saveSlot(name, { ...rest, release });
    return true;
  }

  /** Stops and deletes each release that the spec does not have and that does not serve, once its requests ended. */
  async function removeOthers(app: AppSpec, signal: AbortSignal): Promise<void> {
    const desired = app.releases.map(({ id }) => id);
    for (const name of slotNames) {
      const slot = slots[name];
      if (slot === undefined || name === slots.serving || desired.includes(slot.release.id)) continue;
      const drainUntil = slot.drainUntil ?? now() + slot.release.drainSeconds * 1_000;
      if (slot.drainUntil === undefined) await saveSlot(name, { ...slot, drainUntil });
      while (now() < drainUntil && containers.isRunning(name) && (await front.sessions(name, signal)) > 0)
        await sleep(drainPollMs, undefined, { signal });
      await containers.stop(name);
      const others = slotNames.flatMap((each) => (each === name ? [] : [slots[each]?.release.id ?? ""]));
      await containers.deleteOthers([...new Set([...desired, ...others])], signal);
      const { [name]: _, ...rest } = slots;
      await save(rest);
    }
  }

  async function converge(spec: WorkloadSpec, { changed }: ReconcileSignals): Promise<void> {
    const ended = new AbortController();
    isDeploying = false;
    // The end of the serving release ends the round, so that the next round starts it. A deployment starts it itself.
    const watching = containers.onEnd((name) => {
      if (name === slots.serving && !isDeploying) ended.abort(new WorkloadEnded("program"));
    });
    try {
      await convergeUntil(AbortSignal.any([changed, ended.signal]), spec);
    } finally {
      watching.close();
    }
  }

  async function convergeUntil(signal: AbortSignal, spec: WorkloadSpec): Promise<void> {
    const app = appOf(spec);
    status.setSpec(spec);
    slots = await slotFile.load();
    states.setSlots(slots);
    const { address } = spec;
    network = { address, endpoints: app.endpoints, authorities: app.authorities };
    if (!spec.running) return stopAll();
    await relay.converge(address, app.endpoints, signal);
    const convergeFront = () =>
      front.converge({ address, port: app.port, vcpu: spec.vcpu, serving: slots.serving }, signal);
    await applyRestarts(app, spec.restartCount);
    const isFailed = slots.serving === undefined && failureOf(app.servingReleaseId) !== undefined;
    if (status.state !== "running" && !isFailed) status.setState("starting");
    const serving = slots.serving && slots[slots.serving];
    const isNew = ({ id }: Release) => id !== serving?.release.id && failureOf(id) === undefined;
    isDeploying = serving !== undefined && app.releases.some(isNew);
    if (slots.serving !== undefined && serving !== undefined) await start(slots.serving, serving, signal);
    await convergeFront();

    const deployed = new AbortController();
    const serves = isDeploying ? keepServing(AbortSignal.any([signal, deployed.signal])) : Promise.resolve();
    const failures: unknown[] = [];
    try {
      await removeOthers(app, signal);
      const servingFirst = app.releases.toSorted(
        (a, b) => Number(b.id === app.servingReleaseId) - Number(a.id === app.servingReleaseId),
      );
      for (const release of servingFirst) {
        if (!(await assign(release, spec.restartCount))) continue;
        const name = slotOf(release.id) as SlotName;
        // The serving release is kept running beside those that are deployed.
        if (isDeploying && name === slots.serving) continue;
        try {
          await bringUp(name, signal);
        } catch (error) {
          signal.throwIfAborted();
          states.setProgress(release.id, "pulling", error instanceof Error ? error.message : String(error));
          failures.push(error);
        }
      }
    } finally {
      deployed.abort();
      await serves;
      isDeploying = false;
    }
    const next = slotOf(app.servingReleaseId);
    if (next !== undefined && isReady(next)) {
      if (slots.serving !== next) await save({ ...slots, serving: next });
      await convergeFront();
      await removeOthers(app, signal);
    }
    await settle(app, signal);
    if (failures.length > 0) throw failures[0];
  }

  /** Reports the state of the app by the release that serves now, which may be an older one than the spec's. */
  async function settle(app: AppSpec, signal: AbortSignal): Promise<void> {
    const { serving } = slots;
    if (serving !== undefined && !isReady(serving)) await bringUp(serving, signal);
    if (serving !== undefined && isReady(serving)) return reportRunning();
    const failure = failureOf(app.servingReleaseId);
    if (failure !== undefined) status.setState("failed", failure.reason);
  }

  return {
    converge,
    isRunning: () =>
      front.isRunning && relay.isRunning && slots.serving !== undefined && containers.isRunning(slots.serving),
    serving() {
      const slot = slots.serving && slots[slots.serving];
      return slots.serving === undefined || slot === undefined
        ? undefined
        : { release: slot.release, ...slotAddress(network.address, slots.serving) };
    },
  };
}
