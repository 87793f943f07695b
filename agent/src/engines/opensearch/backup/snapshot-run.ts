import { setTimeout as sleep } from "node:timers/promises";
import type { EngineDeps } from "../../engine-deps.ts";
import type { Instance } from "../../engine-driver.ts";
import { readCluster } from "../cluster-view.ts";
import {
  cancelSnapshot,
  createRepository,
  readSnapshot,
  removeRepository,
  requireSuccess,
  startSnapshot,
} from "./repository.ts";
import { endOfRepository } from "./repository-files.ts";
import { createSpool } from "./spool.ts";
import type { SpooledMember } from "./spooled-members.ts";

/** A snapshot from its start to its end. */
export interface SnapshotRun {
  readonly started: Promise<void>;
  /** Frames of all files; throws SpoolFull for a snapshot that is faster than the caller. */
  frames(): AsyncGenerator<Buffer>;
  /** Removes the snapshot and its files. */
  end(signal: AbortSignal): Promise<void>;
}

/** More bytes wait to be sent than the disk has space for. The snapshot was canceled. */
export class SpoolFull extends Error {
  override readonly name = "SpoolFull";
  /** Rate at which the next snapshot does not outrun its reader. */
  readonly bytesPerSecond: number;

  constructor(bytesPerSecond: number) {
    super("the backup is stored more slowly than the engine writes its snapshot");
    this.bytesPerSecond = bytesPerSecond;
  }
}

interface RunOptions {
  /** Rate of each member. */
  readonly bytesPerSecond: number;
  readonly members: readonly SpooledMember[];
}

const pollMs = 100;
const measureMs = 250;
/** Part of the measured rate of the reader that leaves it time to catch up. */
const safety = 0.7;

export function startRun(
  deps: Pick<EngineDeps, "run">,
  instance: Instance,
  { bytesPerSecond, members }: RunOptions,
  signal: AbortSignal,
): SnapshotRun {
  const finished = new AbortController();
  const running = AbortSignal.any([signal, finished.signal]);
  const spools = members.map(({ number, files, limitBytes }) => {
    return { number, spool: createSpool({ files, limitBytes, signal: running }) };
  });
  const startedMs = performance.now();
  let sentBytes = 0;
  let failure: unknown;

  async function start(): Promise<void> {
    await createRepository(instance, bytesPerSecond, signal);
    await startSnapshot(instance, signal);
    guarding = guard().catch((error: unknown) => {
      // A guard that was stopped has no finding.
      if (error instanceof SpoolFull || !running.aborted) failure = error;
      finished.abort();
    });
  }

  /** Runs while the reader waits for the store, and cancels a snapshot that fills the disk. */
  async function guard(): Promise<void> {
    while (!running.aborted) {
      const beganMs = performance.now();
      const areFull = await Promise.all(spools.map(({ spool }) => spool.isFull()));
      if (areFull.includes(true)) {
        await cancelSnapshot(instance, signal);
        const ofAll = (sentBytes / (performance.now() - startedMs)) * 1_000 * safety;
        const measured = ofAll / members.length;
        throw new SpoolFull(Math.max(Math.min(measured, bytesPerSecond / 2), bytesPerSecond / 4));
      }
      // Many files take long to measure.
      const pauseMs = Math.max(measureMs, 4 * (performance.now() - beganMs));
      await sleep(pauseMs, undefined, { signal: running }).catch(() => undefined);
    }
  }

  async function* send(): AsyncGenerator<Buffer> {
    for (;;) {
      // Read before the files, which are complete if the snapshot is.
      const snapshot = await readSnapshot(instance, running);
      requireSuccess(snapshot);
      let isIdle = true;
      for (const { spool } of spools)
        for await (const bytes of spool.sendData()) {
          running.throwIfAborted();
          isIdle = false;
          sentBytes += bytes.length;
          yield bytes;
        }
      if (snapshot.state === "SUCCESS") break;
      if (isIdle) await sleep(pollMs, undefined, { signal: running });
    }
    const { leader } = await readCluster(instance, running);
    if (!spools.some(({ number }) => number === leader)) throw new Error("a new member leads the cluster");
    for (const { number, spool } of spools) yield* spool.sendRest({ isLeader: number === leader });
    yield endOfRepository();
  }

  let guarding: Promise<void> = Promise.resolve();
  return {
    started: start(),
    async *frames() {
      try {
        yield* send();
      } catch (error) {
        // The engine removes the files of a snapshot while the guard still cancels it.
        finished.abort();
        await guarding;
        throw failure ?? error;
      } finally {
        finished.abort();
      }
    },
    async end(limitSignal) {
      finished.abort();
      await guarding;
      await removeRepository(deps, instance, limitSignal);
      await Promise.all(members.map(({ files }) => files.remove(limitSignal)));
    },
  };
}
