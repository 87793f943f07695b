import type { EngineCheck } from "../engine-driver.ts";
import type { LogicalSlots } from "../replication-facet.ts";
import type { Session } from "./session.ts";

/** Logical slots, except temporary ones, which end with their session. */
export interface ObservedSlots {
  readonly slots: LogicalSlots;
  /** Undefined without slots. */
  readonly check: EngineCheck | undefined;
}

/** Share of the log that a slot may retain from which on the check is degraded. */
const degradedFrom = 0.5;

/*
 * At most `max_replication_slots` rows, which users cannot set. `safe_wal_size` is the log that can still be written
 * until a slot may be invalidated. An invalidated one has none, and is `lost` for each reason (manual,
 * pg_replication_slots).
 */
const slotsSql = `
  SELECT slot_name AS name, database, plugin, wal_status = 'lost' AS "isLost",
    coalesce(to_jsonb(s) ->> 'invalidation_reason', 'wal_removed') AS "lostReason",
    wal_status = 'unreserved' OR coalesce(safe_wal_size < (1 - $1::float8) * 1048576 *
      (SELECT nullif(setting::float8, -1) FROM pg_settings WHERE name = 'max_slot_wal_keep_size'), false) AS "isBehind"
  FROM pg_replication_slots s WHERE slot_type = 'logical' AND NOT temporary ORDER BY slot_name`;

interface SlotRow {
  readonly name: string;
  readonly database: string;
  readonly plugin: string;
  readonly isLost: boolean | null;
  readonly lostReason: string;
  readonly isBehind: boolean | null;
}

/** Reads the slots of an engine that takes writes. */
export async function readLogicalSlots(session: Session): Promise<ObservedSlots> {
  const rows = await session.rows<SlotRow>(slotsSql, [degradedFrom]);
  const isLost = (row: SlotRow) => row.isLost === true;
  const identity = ({ name, database, plugin }: SlotRow) => ({ name, database, plugin });
  return {
    slots: {
      usable: rows.filter((row) => !isLost(row)).map(identity),
      lost: rows.filter(isLost).map((row) => ({ ...identity(row), lostReason: row.lostReason })),
    },
    check: rows.length === 0 ? undefined : checkOf(rows),
  };
}

/** The reasons have no amounts, so that the check changes only when a slot does. */
function checkOf(rows: readonly SlotRow[]): EngineCheck {
  const lost = rows.filter(({ isLost }) => isLost === true);
  const behind = rows.filter(({ isLost, isBehind }) => isLost !== true && isBehind === true);
  const list = (slots: readonly SlotRow[]) => slots.map(({ name }) => name).join(", ");
  const reasons = [
    ...(lost.length === 0
      ? []
      : [`Lost logical slots: ${list(lost)}. Drop them; their consumers must copy their data again.`]),
    ...(behind.length === 0
      ? []
      : [
          `Logical slots that retain half of the log that they may, or more: ${list(behind)}. ` +
            "Let their consumers confirm changes, or drop them, before they are lost.",
        ]),
  ];
  return { name: "logical_slots", status: reasons.length === 0 ? "healthy" : "degraded", reason: reasons.join(" ") };
}
