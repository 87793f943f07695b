import { integer, list, type ValuesOf } from "@holdfast/common/config.ts";

export const servicesSettings = {
  defaultAllowedCidrs: list(
    "HOLDFAST_DEFAULT_ALLOWED_CIDRS",
    "Networks (CIDRs) that a new service admits if its request names none",
  ),
  firstBackupAfterS: integer(
    "HOLDFAST_FIRST_BACKUP_AFTER_S",
    "Seconds from the moment a new service is Running to its first automated backup, so that backups do not delay creations",
    60,
  ),
  finalBackupWithinS: integer(
    "HOLDFAST_FINAL_BACKUP_WITHIN_S",
    "Seconds for which a deletion waits for a final backup that fails and is repeated; then the disk is retained instead",
    1_800,
  ),
  idleLogAfterS: integer(
    "HOLDFAST_IDLE_LOG_AFTER_S",
    "Seconds after which the log of an idle service is stored, 1 to 55; a lower value creates more objects",
    55,
  ),
} as const;

export type ServicesSettings = ValuesOf<typeof servicesSettings>;
