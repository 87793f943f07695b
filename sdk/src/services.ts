import type { LogLine, ManagedService, Operation } from "./responses.ts";
import { follow } from "./follow.ts";
import type { LogFilter } from "./requests.ts";
import { ServiceMethods } from "./methods.ts";
import type { ListOptions } from "./pages.ts";
import { type CallOptions, pathOf } from "./transport.ts";

/** A page of log lines, oldest first. */
export interface LogPage {
  readonly lines: readonly LogLine[];
  /** Cursor of the next page, also when it has no lines yet. */
  readonly next_cursor: string;
  readonly has_more: boolean;
}

/** Commands that start and stop the engine of a service. */
export type Verb = "start" | "stop" | "restart";

/** Managed database services. */
export class Services extends ServiceMethods {
  command(id: string, verb: Verb, options?: CallOptions): Promise<ManagedService> {
    return this.transport.request("POST", pathOf("managed-services", id, verb), options);
  }

  /**
   * Applies pending updates now: those named, or all. The operation has the progress. An update that changes the sort
   * order of text is applied only with `acceptTextOrderChange`.
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
    return this.transport.request("POST", pathOf("managed-services", id, "maintenance", "apply"), {
      ...options,
      body,
    });
  }

  /**
   * Deletes the service with its data; `get` throws NotFound once it is deleted. It can be undeleted for 7 days, unless
   * the final backup is skipped.
   */
  delete(
    id: string,
    { skipFinalBackup = false, ...options }: CallOptions & { skipFinalBackup?: boolean | undefined } = {},
  ): Promise<ManagedService> {
    const query = skipFinalBackup ? { skip_final_backup: true } : {};
    return this.transport.request("DELETE", pathOf("managed-services", id), { ...options, query });
  }

  /** Creates a service like this one with the data of a completed backup, the newest by default. */
  fork(
    id: string,
    name: string,
    {
      backupId,
      nodeCount,
      ...options
    }: CallOptions & { backupId?: string | undefined; nodeCount?: number | undefined } = {},
  ): Promise<ManagedService> {
    const choice = {
      ...(backupId !== undefined && { backup_id: backupId }),
      ...(nodeCount !== undefined && { node_count: nodeCount }),
    };
    const body = { name, ...choice };
    return this.transport.request("POST", pathOf("managed-services", id, "fork"), { ...options, body });
  }

  /** Creates a deleted service again from its retained backups, with its name or another one. */
  undelete(
    id: string,
    { name, ...options }: CallOptions & { name?: string | undefined } = {},
  ): Promise<ManagedService> {
    const body = name === undefined ? {} : { name };
    return this.transport.request("POST", pathOf("managed-services", id, "undelete"), { ...options, body });
  }

  /** One page of the engine's log, oldest line first. */
  logs(id: string, filter?: LogFilter, options?: ListOptions): Promise<LogPage> {
    const { limit, cursor, ...call } = options ?? {};
    const query = { ...filter, limit, cursor };
    return this.transport.request("GET", pathOf("managed-services", id, "logs"), { ...call, query });
  }

  /** Stored lines, then each new one, until the signal aborts; the iteration then throws the signal's reason. */
  followLogs(
    id: string,
    filter?: LogFilter,
    { limit, signal }: Pick<ListOptions, "signal" | "limit"> = {},
  ): AsyncGenerator<LogLine, void, undefined> {
    return follow(this.transport, pathOf("managed-services", id, "logs"), { ...filter, limit }, { signal });
  }
}
