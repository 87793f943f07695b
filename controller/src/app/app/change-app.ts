import type { Message } from "@bufbuild/protobuf";
import type { Call } from "@holdfast/common/call.ts";
import type { AppObject, AppSpec } from "./app.ts";

/** Changes the spec of an app in one transaction with the audit entry, and with the answer where a retry is to get the same. */
export type ChangeApp = (
  appId: string,
  call: Call,
  audit: { readonly action: string; readonly detail?: string },
  edit: (app: AppObject) => AppSpec,
  answer?: Message,
) => Promise<AppObject>;
