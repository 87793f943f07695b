import type { Maintenance } from "@holdfast/sdk/index.ts";
import type { Platform } from "../platform/platform.ts";
import type { RestResponse } from "../api/rest-response.ts";
import type { OperationJson, ProblemJson } from "../api/service-json.ts";
import { expectStatus, type Services } from "../platform/services.ts";
import { waitUntil } from "../wait-until.ts";

/** Requests about the maintenance of services; a failed wait reports all details of the service. */
export interface MaintenanceRequests {
  get(serviceId: string): Promise<Maintenance>;
  /** Resolves once the update, which is an image or "restart", is pending. */
  pending(serviceId: string, update: string): Promise<Maintenance>;
  /** Requests maintenance; returns the response with any status. */
  apply(serviceId: string, body?: object): Promise<RestResponse<OperationJson & ProblemJson>>;
  operation(operationId: string): Promise<OperationJson>;
  /** The operation of the service once it has ended. */
  ended(serviceId: string, operationId: string): Promise<OperationJson>;
}

const endsWithinMs = 180_000;

export function createMaintenanceRequests({ rest }: Platform, services: Services): MaintenanceRequests {
  const path = (serviceId: string) => `/managed-services/${serviceId}/maintenance`;
  const get = async (serviceId: string) => expectStatus(await rest.get<Maintenance>(path(serviceId)), 200).json;
  const operation = async (operationId: string) =>
    expectStatus(await rest.get<OperationJson>(`/operations/${operationId}`), 200).json;
  return {
    get,
    pending: (serviceId, update) =>
      waitUntil(
        `${update} is pending`,
        async () => {
          const found = await get(serviceId);
          return found.updates.some(({ id }) => id === update) && found;
        },
        { describe: async () => JSON.stringify(await get(serviceId), null, 1) },
      ),
    apply: (serviceId, body = {}) => rest.post(`${path(serviceId)}/apply`, body),
    operation,
    ended: (serviceId, operationId) =>
      waitUntil(
        "the operation is over",
        async () => {
          const now = await operation(operationId);
          return now.finished_at !== null && now;
        },
        { withinMs: endsWithinMs, describe: () => services.describe(serviceId) },
      ),
  };
}
