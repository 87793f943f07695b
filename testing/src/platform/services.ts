import type { Platform } from "./platform.ts";
import { lastLogLines } from "./platform-logs.ts";
import type { Rest } from "../api/rest.ts";
import type { ConnectionJson, OperationJson, PageJson, ServiceJson } from "../api/service-json.ts";
import { GiveUp, waitUntil } from "../wait-until.ts";

/** A running service with its connection. */
export interface RunningService {
  readonly service: ServiceJson;
  readonly connection: ConnectionJson;
  /** Password of the default user. */
  readonly password: string;
}

/** Frequent actions on services; a failed wait reports all details of the service. */
export interface Services {
  /** A small service of the engine; `body` adds to the request or replaces. */
  create(name: string, body?: Record<string, unknown>): Promise<ServiceJson>;
  createRunning(name: string, body?: Record<string, unknown>): Promise<RunningService>;
  /** The running service with its connection and its default user's password. */
  open(id: string): Promise<RunningService>;
  get(id: string): Promise<ServiceJson>;
  /** The service once it has the status and no operation is in progress. */
  settled(id: string, status: string, withinMs?: number): Promise<ServiceJson>;
  /** Start, stop or restart, until the service has settled. */
  verb(id: string, verb: "start" | "stop" | "restart", withinMs?: number): Promise<ServiceJson>;
  delete(id: string): Promise<void>;
  /** Resolves when GET responds with 404. */
  deleted(id: string, withinMs?: number): Promise<void>;
  operations(id: string): Promise<readonly OperationJson[]>;
  /** All details of a service, for the report of a failed test. */
  describe(id: string): Promise<string>;
}

const settleMs = 120_000;

export function createServices(platform: Pick<Platform, "directory" | "rest">, rest: Rest = platform.rest): Services {
  const get = async (id: string) => expectStatus(await rest.get<ServiceJson>(`/managed-services/${id}`), 200).json;

  async function operations(id: string): Promise<readonly OperationJson[]> {
    const path = `/managed-services/${id}/operations?limit=200`;
    return expectStatus(await rest.get<PageJson<"operations", OperationJson>>(path), 200).json.operations;
  }

  async function describe(id: string): Promise<string> {
    const parts = await Promise.allSettled([get(id), operations(id)]);
    const parameters = parts.map((part) =>
      part.status === "fulfilled" ? JSON.stringify(part.value, null, 1) : String(part.reason),
    );
    return [...parameters, lastLogLines(platform.directory, 12)].join("\n");
  }

  async function settled(id: string, status: string, withinMs = settleMs): Promise<ServiceJson> {
    const check = async () => {
      const service = await get(id);
      if (service.status === "Error" && status !== "Error") {
        throw new GiveUp(`the service is in Error: ${service.error?.message}\n${await describe(id)}`);
      }
      return service.status === status && service.operation === null ? service : undefined;
    };
    return waitUntil(`service ${id} is ${status}`, check, { withinMs, everyMs: 30, describe: () => describe(id) });
  }

  async function create(name: string, body: Record<string, unknown> = {}): Promise<ServiceJson> {
    const request = { name, database_type: "postgresql", plan_name: "tier-1", storage_size_gb: 1, ...body };
    return expectStatus(await rest.post<ServiceJson>("/managed-services", request), 202).json;
  }

  async function open(id: string): Promise<RunningService> {
    const service = await get(id);
    const connection = expectStatus(await rest.get<ConnectionJson>(`/managed-services/${id}/connection`), 200).json;
    const path = `/managed-services/${id}/database-users/${connection.user}/reveal-password`;
    const { password } = expectStatus(await rest.post<{ password: string }>(path), 200).json;
    return { service, connection, password };
  }

  async function deleted(id: string, withinMs = settleMs): Promise<void> {
    const check = async () => (await rest.get(`/managed-services/${id}`)).status === 404;
    await waitUntil(`service ${id} is deleted`, check, { withinMs, describe: () => describe(id) });
  }

  return {
    create,
    open,
    get,
    settled,
    deleted,
    operations,
    describe,
    async createRunning(name, body) {
      const { id } = await create(name, body);
      await settled(id, "Running");
      return open(id);
    },
    async verb(id, verb, withinMs = settleMs) {
      expectStatus(await rest.post(`/managed-services/${id}/${verb}`), 202);
      return settled(id, verb === "stop" ? "Stopped" : "Running", withinMs);
    },
    async delete(id) {
      expectStatus(await rest.delete(`/managed-services/${id}`), 202);
      await deleted(id);
    },
  };
}

/** Returns the response if it has the status; throws an error with its body otherwise. */
export function expectStatus<A extends { status: number; text: string }>(response: A, status: number): A {
  if (response.status !== status) throw new Error(`${response.status} instead of ${status}: ${response.text}`);
  return response;
}
