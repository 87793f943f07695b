import type { MessageInitShape } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import type { Clock } from "@holdfast/common/clock.ts";
import type { RightSchema } from "@holdfast/proto/holdfast/admin/v1/admin_pb.ts";
import type { Fleet } from "#fleet/fleet.ts";
import { rightMs } from "@holdfast/common/right.ts";
import type { ManagedServiceObject } from "#services/service/managed-service.ts";
import { namedPrimary } from "#services/service/member/members.ts";

/** Pure but for the clock: the right of the service's primary, as this controller heard of it. */
export function rightMessage(
  service: ManagedServiceObject,
  { fleet, clock }: { readonly fleet: Pick<Fleet, "session" | "heardRight">; readonly clock: Pick<Clock, "now"> },
): MessageInitShape<typeof RightSchema> {
  const { metadata, status } = service;
  const machineId = status.primaryNodeId;
  const heard = fleet.heardRight(machineId);
  // The clock that rights are counted by tells fractions, which a timestamp has none of.
  const ago = (ms: number) => timestampFromMs(Math.round(clock.now() - ms));
  return {
    serviceId: metadata.id,
    machineId,
    term: BigInt(status.term),
    controllerId: fleet.session(machineId)?.controllerId ?? "",
    revoked: namedPrimary(service) === "",
    engineSilent: heard?.isEngineSilent ?? false,
    ...(heard !== undefined && { askedAt: ago(heard.askedAgoMs) }),
    ...(heard?.grantedAgoMs !== undefined && { until: ago(heard.grantedAgoMs - rightMs) }),
  };
}
