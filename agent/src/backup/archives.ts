import { setTimeout as sleep } from "node:timers/promises";
import { toBinary } from "@bufbuild/protobuf";
import { createMutex } from "@holdfast/common/concurrency/mutex.ts";
import type { ArchiveObservation, DataKey } from "@holdfast/proto/holdfast/agent/v1/backup_pb.ts";
import { InstanceSpecSchema } from "@holdfast/proto/holdfast/agent/v1/task_pb.ts";
import type { DrivenInstance, Instance } from "../engines/engine-driver.ts";
import type { ArchiveJob, JobKey, Report } from "./job.ts";
import type { JobComponent } from "./job-component.ts";
import { archiveObservation, type TimedReport } from "./job-observations.ts";

/** Archives the log of the running engine, as its settings require, by the `archive` component. */
export interface Archives {
  /** Starts, updates or stops the archive for an engine that runs with these settings. */
  follow(driven: DrivenInstance): Promise<void>;
  /**
   * Stops the archive before the engine stops, since the engine would wait for it. Resolves once its component has
   * ended.
   */
  stop(): Promise<void>;
  /** A base backup is complete; the archive writes its next object early, so that the backup can be restored. */
  baseStored(): void;
  archiveId(): string | undefined;
  observation(): ArchiveObservation | undefined;
  recordReport(report: Report): void;
  /** Restarts the component when it ends by itself, until the signal. */
  run(signal: AbortSignal): Promise<void>;
}

export interface ArchivesDeps {
  readonly component: JobComponent;
  readonly now: () => number;
  readonly onChange: (isStateChange: boolean) => void;
}

const defaultIdleMs = 55_000;
const restartMs = 2_000;

type ArchiveOrder = Omit<ArchiveJob, "socket" | "outcome">;

export function createArchives({ component, now, onChange }: ArchivesDeps): Archives {
  let desired: ArchiveOrder | undefined;
  /** The job that the running component was started with by this agent. */
  let started: ArchiveOrder | undefined;
  let latest: TimedReport | undefined;
  const settling = createMutex();

  /** Identity of a job: a component is restarted when it changes. */
  const identityOf = ({ archiveId, term, service, idleMs }: ArchiveOrder) =>
    JSON.stringify([archiveId, term, service, idleMs]);

  async function settle(): Promise<void> {
    const order = desired;
    if (order === undefined) {
      started = undefined;
      await component.stop();
      return;
    }
    // The component of an earlier agent may have an older key, so it is restarted.
    if (!component.isEmpty && (started === undefined || identityOf(started) !== identityOf(order)))
      await component.stop();
    if (component.isEmpty) {
      await component.start(order);
    } else if (started?.key.id !== order.key.id) component.send({ key: order.key });
    started = order;
  }

  return {
    async follow({ driver, instance }) {
      desired = driver.backup?.log === undefined ? undefined : orderOf(instance);
      if (desired === undefined) latest = undefined;
      await settling(settle);
    },
    async stop() {
      desired = undefined;
      await settling(settle);
    },
    baseStored: () => component.send({ base: true }),
    archiveId: () => (desired ?? started)?.archiveId,
    observation: () => latest && archiveObservation(latest),
    recordReport(report) {
      const isStateChange = latest?.report.state !== report.state;
      const before = latest?.report;
      const archiveId = String(report["archiveId"] ?? before?.["archiveId"] ?? "");
      // Fields of another archive's reports do not apply.
      const previous = before?.["archiveId"] === archiveId ? before : {};
      latest = {
        report: { ...previous, ...report, archiveId },
        sinceMs: isStateChange || latest === undefined ? now() : latest.sinceMs,
      };
      onChange(isStateChange);
    },
    async run(signal) {
      while (!signal.aborted) {
        await component.started(signal);
        await component.ended(signal).catch(() => undefined);
        await sleep(restartMs, undefined, { signal }).catch(() => undefined);
        // After a gap the controller starts a new archive.
        if (!signal.aborted && desired !== undefined && latest?.report.state !== "gap")
          await settling(settle).catch(() => undefined);
      }
    },
  };
}

function orderOf({ spec, paths }: Instance): ArchiveOrder | undefined {
  const { archive, serviceId: service, term } = spec;
  if (archive?.key === undefined) return undefined;
  const keyOf = ({ id, secret }: DataKey): JobKey => ({ id, secret });
  return {
    kind: "archive",
    archiveId: archive.archiveId,
    service,
    term: Number(term),
    key: keyOf(archive.key),
    earlierKeys: archive.earlierKeys.map(keyOf),
    idleMs: archive.idleMs === 0 ? defaultIdleMs : archive.idleMs,
    spec: Buffer.from(
      toBinary(InstanceSpecSchema, { ...spec, users: [], source: undefined, archive: undefined }),
    ).toString("base64"),
    paths,
  };
}
