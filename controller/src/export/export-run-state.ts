import { lookUp } from "@holdfast/common/look-up.ts";
import type { Database } from "#kernel/history/database.ts";

export type Stream = "metrics" | "logs";

/** The run state of an integration in the history. Times are milliseconds since 1970. */
export interface RunState {
  readonly epoch: number;
  readonly consecutiveFailures: number;
  readonly failingSinceMs: number | null;
  readonly isAnnounced: boolean;
  readonly lastError: string | null;
  readonly lastAttemptMs: number | null;
  readonly lastExportMs: number | null;
  /** Items before this time are delivered; null if no items wait. */
  readonly behindSinceMs: number | null;
  readonly samples: number;
  readonly logEntries: number;
  readonly tooOld: number;
  readonly refused: number;
  readonly expired: number;
  readonly expiredSegments: number;
}

/** The position of one stream of one machine. */
export interface ExportCursor {
  readonly machineId: string;
  readonly stream: Stream;
  readonly serviceId: string;
  /**
   * Metrics: a time in milliseconds since 1970, such as `1764246000000`. Logs: a position of the agent's log reader, or
   * `@` and a time (see `positionFrom`).
   */
  readonly position: string;
}

/** Changes of cursors and counters after a batch. */
export interface BatchProgress {
  readonly cursors: readonly ExportCursor[];
  readonly samples: number;
  readonly logEntries: number;
  readonly tooOld: number;
  readonly refused: number;
  readonly expired: number;
  readonly expiredSegments: number;
  readonly atMs: number;
}

/** The result of a tick, which replaces the previous one. */
export interface TickResult {
  readonly atMs: number;
  /** Status and message of the first error; null if the tick succeeded. */
  readonly error: string | null;
  readonly behindSinceMs: number | null;
  /** True if items were sent. */
  readonly hasSent: boolean;
}

/** Another controller has taken over the integration. */
export class TakenOver extends Error {
  override readonly name = "TakenOver";
}

/**
 * Cursors and counters of integrations in the history. Each takeover raises the integration's epoch; writes with an
 * older epoch throw TakenOver and change nothing.
 */
export interface RunStates {
  /** Takes over an integration: raises its epoch, so that a former controller cannot write any more. */
  take(exportId: string): Promise<{ readonly state: RunState; readonly cursors: readonly ExportCursor[] }>;
  advance(exportId: string, epoch: number, progress: BatchProgress): Promise<void>;
  endTick(exportId: string, epoch: number, end: TickResult): Promise<RunState>;
  /** Stores whether the current failures of the integration were announced by an event. */
  setAnnounced(exportId: string, epoch: number, isAnnounced: boolean): Promise<void>;
  drop(exportId: string, epoch: number, cursors: readonly Pick<ExportCursor, "machineId" | "stream">[]): Promise<void>;
  /** Resets the failures of an integration; cursors and counters remain. */
  clear(exportId: string): Promise<void>;
  read(exportIds: readonly string[]): Promise<ReadonlyMap<string, RunState>>;
  /** Ids of all integrations with a run state. */
  ids(): Promise<readonly string[]>;
  forget(exportIds: readonly string[]): Promise<void>;
}

export const newRunState: RunState = {
  epoch: 0,
  consecutiveFailures: 0,
  failingSinceMs: null,
  isAnnounced: false,
  lastError: null,
  lastAttemptMs: null,
  lastExportMs: null,
  behindSinceMs: null,
  samples: 0,
  logEntries: 0,
  tooOld: 0,
  refused: 0,
  expired: 0,
  expiredSegments: 0,
};

type Row = Readonly<Record<string, string | number | boolean | null>>;

export function createRunStates(whenReady: () => Database): RunStates {
  const requireRow = (rows: readonly Row[], exportId: string): Row => {
    const [row] = rows;
    if (row === undefined) throw new TakenOver(`another controller works on ${exportId}`);
    return row;
  };

  return {
    async take(exportId) {
      const [row = {}] = await whenReady().query<Row>(
        `insert into export_state (export_id) values ($1)
         on conflict (export_id) do update set epoch = export_state.epoch + 1 returning *`,
        [exportId],
      );
      const cursors = await whenReady().query<Row>(
        "select machine_id, stream, service_id, position from export_cursor where export_id = $1",
        [exportId],
      );
      return { state: stateOf(row), cursors: cursors.map(cursorOf) };
    },
    async advance(exportId, epoch, { cursors, ...figures }) {
      const rows = await whenReady().query<Row>(
        `with current as (
           update export_state set samples = samples + $3, log_entries = log_entries + $4, too_old = too_old + $5,
             refused = refused + $6, gone = gone + $7, gone_segments = gone_segments + $8,
             last_export_ms = case when $3::bigint + $4::bigint > 0 then $9::bigint else last_export_ms end
           where export_id = $1 and epoch = $2 returning export_id
         ), moved as (
           insert into export_cursor (export_id, machine_id, stream, service_id, position)
           select current.export_id, c.* from current, unnest($10::uuid[], $11::text[], $12::uuid[], $13::text[]) as c
           on conflict (export_id, machine_id, stream)
           do update set position = excluded.position, service_id = excluded.service_id
         )
         select export_id from current`,
        [
          exportId,
          epoch,
          figures.samples,
          figures.logEntries,
          figures.tooOld,
          figures.refused,
          figures.expired,
          figures.expiredSegments,
          Math.trunc(figures.atMs),
          cursors.map(({ machineId }) => machineId),
          cursors.map(({ stream }) => stream),
          cursors.map(({ serviceId }) => serviceId),
          cursors.map(({ position }) => position),
        ],
      );
      requireRow(rows, exportId);
    },
    async endTick(exportId, epoch, { atMs, error, behindSinceMs, hasSent }) {
      const rows = await whenReady().query<Row>(
        `update export_state set
           consecutive_failures = case when $4::text is null then 0 else consecutive_failures + 1 end,
           failing_since_ms = case when $4::text is null then null else coalesce(failing_since_ms, $3::bigint) end,
           last_error = $4,
           behind_since_ms = $5::bigint,
           last_attempt_ms = case when $6::boolean then $3::bigint else last_attempt_ms end
         where export_id = $1 and epoch = $2 returning *`,
        [exportId, epoch, Math.trunc(atMs), error, behindSinceMs === null ? null : Math.trunc(behindSinceMs), hasSent],
      );
      return stateOf(requireRow(rows, exportId));
    },
    async setAnnounced(exportId, epoch, isAnnounced) {
      const text = "update export_state set told = $3 where export_id = $1 and epoch = $2 returning export_id";
      requireRow(await whenReady().query<Row>(text, [exportId, epoch, isAnnounced]), exportId);
    },
    async drop(exportId, epoch, cursors) {
      await whenReady().query(
        `delete from export_cursor c using export_state s, unnest($3::uuid[], $4::text[]) as dropped (machine_id, stream)
         where s.export_id = $1 and s.epoch = $2 and c.export_id = s.export_id
           and c.machine_id = dropped.machine_id and c.stream = dropped.stream`,
        [exportId, epoch, cursors.map(({ machineId }) => machineId), cursors.map(({ stream }) => stream)],
      );
    },
    async clear(exportId) {
      await whenReady().query(
        `update export_state set consecutive_failures = 0, failing_since_ms = null, last_error = null, told = false
         where export_id = $1`,
        [exportId],
      );
    },
    async read(exportIds) {
      if (exportIds.length === 0) return new Map();
      const text = "select * from export_state where export_id = any($1::uuid[])";
      const rows = await whenReady().read<Row>(text, [exportIds]);
      return new Map(rows.map((row) => [String(row["export_id"]), stateOf(row)]));
    },
    async ids() {
      const rows = await whenReady().query<Row>("select export_id from export_state");
      return rows.map((row) => String(row["export_id"]));
    },
    async forget(exportIds) {
      await whenReady().query("delete from export_state where export_id = any($1::uuid[])", [exportIds]);
    },
  };
}

function cursorOf(row: Row): ExportCursor {
  return {
    machineId: String(row["machine_id"]),
    stream: row["stream"] === "logs" ? "logs" : "metrics",
    serviceId: String(row["service_id"]),
    position: String(row["position"]),
  };
}

function stateOf(row: Row): RunState {
  const number = (name: string) => Number(lookUp(row, name));
  const orNull = (name: string) => {
    const value = lookUp(row, name) ?? null;
    return value === null ? null : Number(value);
  };
  return {
    epoch: number("epoch"),
    consecutiveFailures: number("consecutive_failures"),
    failingSinceMs: orNull("failing_since_ms"),
    isAnnounced: row["told"] === true,
    lastError: row["last_error"] === null ? null : String(row["last_error"]),
    lastAttemptMs: orNull("last_attempt_ms"),
    lastExportMs: orNull("last_export_ms"),
    behindSinceMs: orNull("behind_since_ms"),
    samples: number("samples"),
    logEntries: number("log_entries"),
    tooOld: number("too_old"),
    refused: number("refused"),
    expired: number("gone"),
    expiredSegments: number("gone_segments"),
  };
}
