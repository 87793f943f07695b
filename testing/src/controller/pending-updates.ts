import { create, type MessageInitShape } from "@bufbuild/protobuf";
import {
  type ImageUrgency,
  seriesNameOf,
  type NodeImageObject,
} from "@holdfast/controller/services/maintenance/node-image.ts";
import type { MaintenanceContext } from "@holdfast/controller/services/maintenance/pending-update.ts";
import type {
  ManagedServiceObject,
  ManagedServiceSpec,
  ManagedServiceStatus,
} from "@holdfast/controller/services/service/managed-service.ts";
import { InstanceObservationSchema } from "@holdfast/proto/holdfast/agent/v1/session_pb.ts";
import { readyHost } from "../platform/ready-host.ts";
import { runningService } from "./service-object.ts";

export const hourMs = 3_600_000;
/** A Monday at noon (UTC), in ms since 1970. */
export const mondayNoonMs = Date.parse("2026-11-16T12:00:00Z");

export interface ServiceChange {
  readonly spec?: Partial<ManagedServiceSpec>;
  readonly status?: Partial<ManagedServiceStatus>;
}

/** A PostgreSQL 17 with a maintenance window on Sundays at 3. */
export function windowed({ spec, status }: ServiceChange = {}): ManagedServiceObject {
  const id = "0198f2a4-6f0e-7c41-9a55-1d2b0c9e7f10";
  return runningService({ id, organizationId: "o" }, { maintenanceWindow: { day: 6, hour: 3 }, ...spec }, status);
}

/** A node image with PostgreSQL 17, or with the named version. */
export function nodeImage(
  name: string,
  engineVersion: string,
  createdAt: number,
  options: { newest?: boolean; urgent?: ImageUrgency; line?: string } = {},
): NodeImageObject {
  const version = options.line ?? "17";
  return {
    metadata: { id: name, name, organizationId: "", generation: 1, createdAt, updatedAt: createdAt },
    spec: { engines: [{ engine: "postgresql", version, engineVersion }], urgent: options.urgent ?? null },
    status: { newestOf: options.newest === true ? [seriesNameOf("postgresql", version)] : [] },
  };
}

/** The service's image, and newer ones with another version of the engine and with the same. */
export const currentImage = nodeImage("trixie-1", "17.10", 0);
export const minorUpdate = nodeImage("trixie-2", "17.11", mondayNoonMs, { newest: true });
export const packageUpdate = nodeImage("trixie-2", "17.10", mondayNoonMs, { newest: true });

/** Context of the service's pending updates, with one host that has these images. */
export function maintenanceContext(
  images: readonly NodeImageObject[],
  now: number,
  instance: MessageInitShape<typeof InstanceObservationSchema> | undefined = {},
): MaintenanceContext {
  const observed = { state: "running", engineVersion: "17.10", freeBytes: 1n << 30n, dataBytes: 1n, ...instance };
  const hosts = [readyHost("a", {}, { imageIds: images.map(({ metadata }) => metadata.id) })];
  const engine = create(InstanceObservationSchema, observed);
  return { images, hosts, image: "trixie-1", guestKernel: "", instance: engine, keepers: [], snapshotProblem: "", now };
}
