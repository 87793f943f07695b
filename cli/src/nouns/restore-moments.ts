import type { ManagedService, ServiceBackups, TimeRange } from "@holdfast/sdk/responses.ts";

export const momentFields = ["restorable", "gaps", "last_completed_at", "next_at"];

/** A service's backups with its restorable window and the gaps in it as texts. */
export function withMoments(backups: ServiceBackups): object {
  const { restorable, gaps } = backups;
  const text = ({ from, to }: TimeRange) => `${from} to ${to}`;
  return {
    ...backups,
    restorable: restorable === null ? "nothing yet" : text(restorable),
    gaps: gaps.length === 0 ? "none" : gaps.map(text).join(", "),
  };
}

/** A copy with its source as a text, and the time of its data. */
export function withSource(service: Pick<ManagedService, "restored_from">): object {
  const { restored_from: from } = service;
  if (from === null) return service;
  const source = `${from.kind} of backup ${from.backup_id} of service ${from.service_id}`;
  return { ...service, restored_from: source, restores_to: from.restores_to };
}
