import { integer, list, type ValuesOf } from "@holdfast/common/config.ts";

export const servicesSettings = {
  defaultAllowedCidrs: list(
    "HOLDFAST_DEFAULT_ALLOWED_CIDRS",
    "Networks (CIDRs) that a new service admits if its request names none",
  ),
  firstBackupAfterS: integer(
    "HOLDFAST_FIRST_BACKUP_AFTER_S",
    "Delay, in seconds, from a new service's first Running to its first automated backup",
    60,
  ),
  finalBackupWithinS: integer(
    "HOLDFAST_FINAL_BACKUP_WITHIN_S",
    "Time, in seconds, for which a deletion waits for a failing final backup; afterwards the disk is retained instead",
    1_800,
  ),
  idleLogAfterS: integer(
    "HOLDFAST_IDLE_LOG_AFTER_S",
    "Delay, in seconds (1 to 55), after which the log of an idle service is stored; a lower value creates more objects",
    55,
  ),
} as const;

export type ServicesSettings = ValuesOf<typeof servicesSettings>;
