import { listOf } from "./create-view.ts";

/** The input of the form of a service's settings. */
export interface SettingsInput {
  readonly name: string;
  readonly cidrs: string;
  readonly isProtected: boolean;
}

/** The change of the edited fields alone, so that another client's change of the others is not undone. */
export function settingsChangeOf({ name, cidrs, isProtected }: Partial<SettingsInput>) {
  return {
    ...(name !== undefined && { name }),
    ...(cidrs !== undefined && { allowed_cidrs: listOf(cidrs) }),
    ...(isProtected !== undefined && { deletion_protection: isProtected }),
  };
}
