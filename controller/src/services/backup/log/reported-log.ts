import type { ArchiveObservation } from "@holdfast/proto/holdfast/agent/v1/backup_pb.ts";
import type { ManagedServiceObject } from "../../service/managed-service.ts";
import { taskTarget } from "../../service/member/member-roles.ts";
import type { ArchiveObject, LogRange } from "../archive/archive.ts";
import { currentRange, rangesWith } from "./log-archive.ts";

/**
 * The ranges, extended by the reports of the members. A replaced primary may have stored log after its last recorded
 * report, so its last report is used until the range of the next term is recorded.
 */
export function reportedRanges(
  archive: ArchiveObject,
  service: ManagedServiceObject,
  reportOf: (machineId: string) => ArchiveObservation | undefined,
): readonly LogRange[] {
  const { id: primary } = taskTarget(service);
  const term = currentRange(archive)?.term;
  const former = service.spec.nodes.find(
    ({ id }) => id !== primary && term !== undefined && Number(reportOf(id)?.term ?? -1n) === term,
  );
  const before = former === undefined ? archive.status.log : rangesWith(archive, reportOf(former.id));
  return rangesWith({ ...archive, status: { ...archive.status, log: before } }, reportOf(primary));
}
