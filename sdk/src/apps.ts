import { AppMethods } from "./methods.ts";
import type { AppDeletion } from "./responses.ts";
import { type CallOptions, pathOf } from "./transport.ts";

/** Apps of the organization, with their attached databases and files services. */
export class Apps extends AppMethods {
  /** Deletes an app and its sign-in. The response for a hosted app has the operation that deletes its machines. */
  async delete(appId: string, options?: CallOptions): Promise<AppDeletion> {
    const request = { ...options, absentIsSuccess: true };
    const pending = await this.transport.request<AppDeletion | undefined>(
      "DELETE",
      pathOf("app-services", appId),
      request,
    );
    return pending ?? { id: appId, operation: null };
  }
}
