import { UserMethods } from "./methods.ts";
import type { CallOptions } from "./transport.ts";

/** Users of the platform and their passwords. */
export class Users extends UserMethods {
  /**
   * Changes the caller's password. Sent once: the old password becomes invalid, so a retry would be refused.
   */
  changePassword(currentPassword: string, newPassword: string, options?: CallOptions): Promise<void> {
    const body = { current_password: currentPassword, new_password: newPassword };
    return this.transport.request("POST", "/users/me/password", { ...options, body, single: true });
  }
}
