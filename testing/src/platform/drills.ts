import { FleetService } from "@holdfast/proto/holdfast/admin/v1/admin_pb.ts";
import { asOperator } from "./organizations.ts";
import type { Platform } from "./platform.ts";
import { expectStatus } from "./services.ts";
import { waitUntil } from "../wait-until.ts";

export interface DrillJson {
  readonly id: string;
  readonly status: string;
  readonly target: string | null;
  readonly error: string | null;
  readonly operation_id: string;
  readonly checks: readonly { name: string; of: string; passed: boolean; detail: string }[];
}

/** A drill restores a backup into a new machine. On a loaded host that takes minutes, like every restore. */
const withinMs = 600_000;

/** The drill once it has ended. */
export function drilled({ rest }: Platform, serviceId: string, drillId: string): Promise<DrillJson> {
  let last: DrillJson | undefined;
  const check = async () => {
    const response = await rest.get<{ drills: DrillJson[] }>(`/managed-services/${serviceId}/backups/drills`);
    last = expectStatus(response, 200).json.drills.find(({ id }) => id === drillId);
    return last !== undefined && ["completed", "failed"].includes(last.status) ? last : undefined;
  };
  const describe = () => JSON.stringify(last);
  return waitUntil(`the drill ${drillId} has ended`, check, { withinMs, everyMs: 200, describe });
}

/** Resolves when no machine belongs to a drill. */
export async function noDrillMachines(platform: Platform): Promise<void> {
  const machines = async () => {
    const { machines: all } = await asOperator(platform, FleetService, (fleet) =>
      fleet.listMachines({ page: { limit: 200 } }),
    );
    return all.filter(({ ownerKind }) => ownerKind === "drill");
  };
  await waitUntil("no drill has a machine", async () => (await machines()).length === 0, { withinMs, everyMs: 200 });
}
