import type { LogLine, ManagedService, Operation } from "./answers.ts";
import { follow } from "./follow.ts";
import type { LogFilter } from "./inputs.ts";
import type { LogPage } from "./log-types.ts";
import { ServiceMethods } from "./methods.ts";
import type { ListOptions } from "./pages.ts";
import { type CallOptions, pathOf } from "./transport.ts";

/** What changes whether a service runs. */
export type Verb = "start" | "stop" | "restart";

/** Managed database services. */
export class Services extends ServiceMethods {
  command(id: string, verb: Verb, options?: CallOptions): Promise<ManagedService> {
    return this.transport.request("POST", pathOf("managed-services", id, verb), options);
  }

  /**
   * Applies these pending updates now, all when none is named; the operation tells the progress. An update that changes
   * the sort order of text is applied only when the caller accepts that.
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
   * Deletes the service with its data; get throws NotFound when nothing of it is left. It can be undeleted for 7 days,
   * unless the final backup is skipped.
   */
  delete(
    id: string,
    { skipFinalBackup = false, ...options }: CallOptions & { skipFinalBackup?: boolean | undefined } = {},
  ): Promise<ManagedService> {
    const query = skipFinalBackup ? { skip_final_backup: true } : {};
    return this.transport.request("DELETE", pathOf("managed-services", id), { ...options, query });
  }

  /** Makes a new service like this one, out of its newest completed backup unless one is named. */
  fork(
    id: string,
    name: string,
    { backupId, ...options }: CallOptions & { backupId?: string | undefined } = {},
  ): Promise<ManagedService> {
    const body = { name, ...(backupId !== undefined && { backup_id: backupId }) };
    return this.transport.request("POST", pathOf("managed-services", id, "fork"), { ...options, body });
  }

  /** Brings a deleted service back, under another name when one is given. */
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

  /** Lines so far, then each as it comes, until the signal aborts: the iteration then throws its reason. */
  followLogs(
    id: string,
    filter?: LogFilter,
    options?: Pick<CallOptions, "signal">,
  ): AsyncGenerator<LogLine, void, undefined> {
    return follow(this.transport, pathOf("managed-services", id, "logs"), { ...filter }, options);
  }
}
