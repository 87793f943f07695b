import { NodeRole } from "@holdfast/proto/holdfast/v1/managed_service_pb.ts";
import type { MonitoredMachine } from "#fleet/owner/monitored-owner.ts";

const roles = { primary: NodeRole.PRIMARY, replica: NodeRole.REPLICA } as const;

/** Role of a machine in messages. */
export function nodeRoleOf({ role }: MonitoredMachine): NodeRole {
  return roles[role];
}
