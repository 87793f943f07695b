import { setTimeout as sleep } from "node:timers/promises";
import { toBinary } from "@bufbuild/protobuf";
import type { ArchiveObservation, DataKey } from "@holdfast/proto/holdfast/agent/v1/backup_pb.ts";
import { InstanceSpecSchema } from "@holdfast/proto/holdfast/agent/v1/task_pb.ts";
import type { DrivenInstance, Instance } from "../engines/engine-driver.ts";
import type { ArchiveJob, JobKey, Report } from "./job.ts";
import type { JobComponent } from "./job-component.ts";
import { archiveObservation, type Told } from "./job-observations.ts";

/** Has a running engine's log archived as its settings say. */
export interface Archives {
  /** The engine runs with these settings. */
  hold(driven: DrivenInstance): Promise<void>;
  /** The engine is to stop: it would wait for whoever follows its log. Resolves when nobody does. */
  release(): Promise<void>;
  /** A base that the log goes on from is complete. */
  baseStored(): void;
  archiveId(): string | undefined;
  observation(): ArchiveObservation | undefined;
  reported(report: Report): void;
  /** Starts it again when it ended by itself. */
  run(signal: AbortSignal): Promise<void>;
}

export interface ArchivesDeps {
  readonly component: JobComponent;
  readonly now: () => number;
  readonly onChange: (isNews: boolean) => void;
}

const usualIdleMs = 55_000;
const restartMs = 2_000;

type ArchiveOrder = Omit<ArchiveJob, "socket" | "outcome">;

export function createArchives({ component, now, onChange }: ArchivesDeps): Archives {
  let wanted: ArchiveOrder | undefined;
  /** What runs was started for it, by this agent. */
  let started: ArchiveOrder | undefined;
  let told: Told | undefined;
  let turn: Promise<void> = Promise.resolve();

  /** What a component must be started anew for. */
  const markOf = ({ archiveId, term, service, idleMs }: ArchiveOrder) =>
    JSON.stringify([archiveId, term, service, idleMs]);

  async function settle(): Promise<void> {
    const order = wanted;
    if (order === undefined) {
      started = undefined;
      await component.stop();
      return;
    }
    // One of an earlier agent may have an older key: it is started again.
    if (!component.isEmpty && (started === undefined || markOf(started) !== markOf(order))) await component.stop();
    if (component.isEmpty) {
      await component.start(order);
    } else if (started?.key.id !== order.key.id) component.send({ key: order.key });
    started = order;
  }

  function inTurn(): Promise<void> {
    const done = turn.then(settle);
    turn = done.catch(() => undefined);
    return done;
  }

  return {
    async hold({ driver, instance }) {
      wanted = driver.backup?.log === undefined ? undefined : orderOf(instance);
      if (wanted === undefined) told = undefined;
      await inTurn();
    },
    async release() {
      wanted = undefined;
      await inTurn();
    },
    baseStored: () => component.send({ base: true }),
    archiveId: () => (wanted ?? started)?.archiveId,
    observation: () => told && archiveObservation(told),
    reported(report) {
      const isNews = told?.report.state !== report.state;
      const before = told?.report;
      const archiveId = String(report["archiveId"] ?? before?.["archiveId"] ?? "");
      // Nothing of another archive is true of this one.
      const known = before?.["archiveId"] === archiveId ? before : {};
      told = {
        report: { ...known, ...report, archiveId },
        sinceMs: isNews || told === undefined ? now() : told.sinceMs,
      };
      onChange(isNews);
    },
    async run(signal) {
      while (!signal.aborted) {
        await component.begun(signal);
        await component.ended(signal).catch(() => undefined);
        await sleep(restartMs, undefined, { signal }).catch(() => undefined);
        // A gap is for the controllers to close: another archive begins anew.
        if (!signal.aborted && wanted !== undefined && told?.report.state !== "gap")
          await inTurn().catch(() => undefined);
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
    idleMs: archive.idleMs === 0 ? usualIdleMs : archive.idleMs,
    spec: Buffer.from(
      toBinary(InstanceSpecSchema, { ...spec, users: [], source: undefined, archive: undefined }),
    ).toString("base64"),
    paths,
  };
}
