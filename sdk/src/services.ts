import { follow } from "./follow.ts";
import type { LogFilter, LogLine, LogPage } from "./log-types.ts";
import type { Maintenance } from "./maintenance-types.ts";
import type { Operation } from "./operation-types.ts";
import { type List, type ListOptions, listOf } from "./pages.ts";
import type {
  Connection,
  ManagedService,
  NewService,
  ServiceChange,
  ServiceFilter,
  ServiceNode,
  TaskSummary,
} from "./service-types.ts";
import { type CallOptions, pathOf, type Transport } from "./transport.ts";

/** What changes whether a service runs. */
export type Verb = "start" | "stop" | "restart";

/** Managed database services. */
export class Services {
  readonly #transport: Transport;

  constructor(transport: Transport) {
    this.#transport = transport;
  }

  /** Oldest first. */
  list(filter?: ServiceFilter, options?: ListOptions): List<ManagedService> {
    return listOf(this.#transport, "/managed-services", "services", options, { ...filter });
  }

  /** Answers at once in Pending; its operation tells how far it is. */
  create(service: NewService, options?: CallOptions): Promise<ManagedService> {
    return this.#transport.request("POST", "/managed-services", { ...options, body: service });
  }

  get(id: string, options?: CallOptions): Promise<ManagedService> {
    return this.#transport.request("GET", pathOf("managed-services", id), options);
  }

  update(id: string, change: ServiceChange, options?: CallOptions): Promise<ManagedService> {
    return this.#transport.request("PATCH", pathOf("managed-services", id), { ...options, body: change });
  }

  command(id: string, verb: Verb, options?: CallOptions): Promise<ManagedService> {
    return this.#transport.request("POST", pathOf("managed-services", id, verb), options);
  }

  /** Its window and what waits to be done to it. */
  maintenance(id: string, options?: CallOptions): Promise<Maintenance> {
    return this.#transport.request("GET", pathOf("managed-services", id, "maintenance"), options);
  }

  /**
   * Applies these pending updates now, all when none is named; the operation tells how far it is. One that changes the order
   * of text is applied only when that is accepted.
   */
  applyMaintenance(
    id: string,
    updateIds: readonly string[] = [],
    { acceptTextOrderChange = false, ...options }: CallOptions & { acceptTextOrderChange?: boolean } = {},
  ): Promise<Operation> {
    const body = {
      ...(updateIds.length > 0 && { update_ids: updateIds }),
      ...(acceptTextOrderChange && { accept_text_order_change: true }),
    };
    return this.#transport.request("POST", pathOf("managed-services", id, "maintenance", "apply"), {
      ...options,
      body,
    });
  }

  /** Deletes the service with its data; get throws NotFound when nothing of it is left. */
  delete(id: string, options?: CallOptions): Promise<ManagedService> {
    return this.#transport.request("DELETE", pathOf("managed-services", id), options);
  }

  /** All that a client needs to connect but the password. */
  connection(id: string, options?: CallOptions): Promise<Connection> {
    return this.#transport.request("GET", pathOf("managed-services", id, "connection"), options);
  }

  nodes(id: string, options?: ListOptions): List<ServiceNode> {
    return listOf(this.#transport, pathOf("managed-services", id, "nodes"), "nodes", options);
  }

  taskSummary(id: string, options?: CallOptions): Promise<TaskSummary> {
    return this.#transport.request("GET", pathOf("managed-services", id, "task-summary"), options);
  }

  /** One page of the engine's log, oldest line first. */
  logs(id: string, filter?: LogFilter, options?: ListOptions): Promise<LogPage> {
    const { limit, cursor, ...call } = options ?? {};
    const query = { ...filter, limit, cursor };
    return this.#transport.request("GET", pathOf("managed-services", id, "logs"), { ...call, query });
  }

  /** Lines so far, then each as it comes, until the signal aborts: the iteration then throws its reason. */
  followLogs(
    id: string,
    filter?: LogFilter,
    options?: Pick<CallOptions, "signal">,
  ): AsyncGenerator<LogLine, void, undefined> {
    return follow(this.#transport, pathOf("managed-services", id, "logs"), { ...filter }, options);
  }
}
