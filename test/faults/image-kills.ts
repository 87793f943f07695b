import type { ChangingImages } from "@holdfast/testing/machines/changing-images.ts";
import { createMaintenanceRequests } from "@holdfast/testing/machines/maintenance-requests.ts";
import type { Platform } from "@holdfast/testing/platform/platform.ts";
import { killImmediately, type MachineProcesses } from "@holdfast/testing/platform/platform-processes.ts";
import type { OperationJson } from "@holdfast/testing/api/service-json.ts";
import { expectStatus, type RunningService, type Services } from "@holdfast/testing/platform/services.ts";
import { waitUntil } from "@holdfast/testing/wait-until.ts";
import type { AcknowledgedWriter } from "./acknowledged-writer.ts";

/** Steps of an image's replacement at which a process is killed, in order. */
export const imageSteps = ["StopEngine", "StopServer", "ReplaceImage", "SetupAgent", "ProvisioningHealth"] as const;
/** Steps of the replacement by an image that damages the data, and is rolled back. */
export const damagingSteps = ["ReplaceImage", "SetupAgent", "ProvisioningHealth", "RollBackImage"] as const;
export const imageVictims = ["controller", "agent", "keeper", "machine", "engine"] as const;

export interface ImageKill {
  readonly step: (typeof imageSteps | typeof damagingSteps)[number];
  readonly victim: (typeof imageVictims)[number];
}

const order: readonly string[] = [...imageSteps, "RollBackImage"];

export interface ImageKillFixture {
  readonly platform: Platform;
  readonly services: Services;
  readonly service: RunningService;
  /** `both`: two valid images. `damaging`: an image that damages the data, if that is the case to test. */
  readonly images: Pick<ChangingImages, "choose"> & {
    readonly both: readonly [string, string];
    readonly damaging?: string;
  };
  readonly writer: AcknowledgedWriter;
}

const endsWithinMs = 180_000;

/**
 * Switches the service to the other one of two valid images, and kills the victim once the operation is at the step.
 * Throws unless the operation ends, and the service runs and accepts writes on the image that its result reports.
 * Resolves with a description of the outcome.
 */
export async function killAtImageStep(fixture: ImageKillFixture, { step, victim }: ImageKill): Promise<string> {
  const { platform, services, service, images, writer } = fixture;
  const { id } = service.service;
  const requests = createMaintenanceRequests(platform, services);
  const { image: from } = await requests.get(id);
  const [first, second] = images.both;
  const to = images.damaging ?? (from === first ? second : first);
  await images.choose(to);
  await requests.pending(id, to);
  const started = expectStatus(await requests.apply(id), 202).json;
  // A killed controller does not respond.
  const operation = async () =>
    (await platform.rest.get<OperationJson>(`/operations/${started.id}`).catch(() => undefined))?.json ?? started;
  const isAt = (now: OperationJson) => now.finished_at !== null || order.indexOf(now.step ?? "") >= order.indexOf(step);
  await waitUntil(`it is at ${step}`, async () => isAt(await operation()), { withinMs: endsWithinMs, everyMs: 5 });
  await waitUntil(
    `there is a ${victim} to kill`,
    async () => {
      const pids = pidsOf(victim, platform);
      return pids.map((pid) => killImmediately(pid)).some(Boolean) || (await operation()).finished_at !== null;
    },
    { everyMs: 5 },
  );
  const killedAt = (await operation()).step;
  const ended = await waitUntil(
    "the operation ends",
    async () => {
      const now = await operation();
      return now.finished_at !== null && now;
    },
    { withinMs: endsWithinMs, describe: () => services.describe(id) },
  );
  await services.settled(id, "Running", endsWithinMs);
  const expected = ended.status === "completed" ? to : from;
  const { image } = await requests.get(id);
  if (image !== expected) throw new Error(`the operation is ${ended.status}, and the service runs from ${image}`);
  const before = writer.acknowledged;
  await waitUntil("the engine acknowledges writes", () => writer.acknowledged > before + 1, {
    describe: () => services.describe(id),
  });
  const { machines } = platform.processes();
  if (machines.length !== 1) throw new Error(`${machines.length} machines run: ${JSON.stringify(machines)}`);
  const { state = "unknown", reason } = ended.snapshot ?? {};
  if (images.damaging !== undefined && state !== "restored")
    throw new Error(`the damaged data were not restored: ${state} ${reason ?? ""}`);
  return `${step} ${victim} (it was at ${killedAt}): ${ended.status} ${ended.error?.message ?? ""} snapshot ${state} ${reason ?? ""}`;
}

function pidsOf(victim: ImageKill["victim"], platform: Platform): number[] {
  const { controllers, machines } = platform.processes();
  if (victim === "controller") return [...controllers];
  const part: keyof MachineProcesses = victim === "machine" ? "launcher" : victim;
  return machines.map((machine) => machine[part]).filter((pid) => pid !== undefined);
}
