import { AuditService, type ListAuditLogRequestSchema } from "@holdfast/proto/holdfast/v1/audit_pb.ts";
import { casesOf, type Contract, ofCaller } from "@holdfast/testing/contract/contract.ts";
import { page, type SameInput, sameInputs, type sdk, sdkCalls, time } from "@holdfast/testing/contract/sdk-calls.ts";

declare module "@holdfast/testing/api/rest-types.ts" {
  interface KnownTexts {
    readonly "holdfast.v1.AuditLogEntry": { readonly result: "ok" | "refused" };
  }
}

export default {
  authorization: [
    casesOf(AuditService, {
      listAuditLog: ofCaller,
    }),
  ],
  sdk: [
    sdkCalls(AuditService, {
      listAuditLog: (c) => c.auditLog({ actor: "a", object: "o", action: "x", since: time, until: time }, page),
    }),
  ],
  sdkInputs: sameInputs<{
    auditFilter: SameInput<sdk.AuditFilter, typeof ListAuditLogRequestSchema>;
  }>(),
} satisfies Contract;
