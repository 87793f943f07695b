import { FilesMethods, Operations } from "./methods.ts";
import type { ManagedService, ServiceStatus } from "./responses.ts";
import { type CallOptions, pathOf } from "./transport.ts";
import { type DeletedTarget, type WaitOptions, waitFor } from "./wait.ts";

/** Files services: object storage with the S3 API, one bucket each. */
export class Files extends FilesMethods {
  /**
   * Deletes the files service with its objects; `get` throws NotFound once it is deleted. It can be undeleted for 7
   * days, unless it is deleted permanently.
   */
  delete(
    id: string,
    { permanently = false, ...options }: CallOptions & { permanently?: boolean | undefined } = {},
  ): Promise<ManagedService> {
    const query = permanently ? { skip_final_backup: true } : {};
    return this.transport.request("DELETE", pathOf("files-services", id), { ...options, query });
  }

  /** Waits until the files service has the status and no operation in progress, as `Client.waitFor` does. */
  waitFor(service: ManagedService | string, target: ServiceStatus, options?: WaitOptions): Promise<ManagedService>;
  /** Waits until the files service is deleted. */
  waitFor(service: ManagedService | string, target: DeletedTarget, options?: WaitOptions): Promise<undefined>;
  waitFor(
    service: ManagedService | string,
    target: ServiceStatus | DeletedTarget,
    options?: WaitOptions,
  ): Promise<ManagedService | undefined> {
    return waitFor({ services: this, operations: new Operations(this.transport) }, service, target, options);
  }
}
