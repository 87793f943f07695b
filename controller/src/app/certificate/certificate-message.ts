import { create } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import {
  type AppDomainCertificate,
  AppDomainCertificateSchema,
  AppDomainCertificateState,
} from "@holdfast/proto/holdfast/v1/app_pb.ts";
import type { DomainCertificateObject } from "./domain-certificate.ts";

/** The message of a domain's certificate in responses. */
export function certificateMessage({ status }: DomainCertificateObject, now: number): AppDomainCertificate {
  const { issued, failures, error, order, nextAttemptAt } = status;
  const isValid = issued !== null && issued.expiresAt > now;
  const { PENDING, ISSUED, FAILED } = AppDomainCertificateState;
  const state = failures > 0 ? FAILED : PENDING;
  return create(AppDomainCertificateSchema, {
    state: isValid ? ISSUED : state,
    ...(issued && { issuer: issued.issuer, expiresAt: timestampFromMs(issued.expiresAt) }),
    ...(error !== null && { error }),
    ...(error !== null && order === null && { nextAttemptAt: timestampFromMs(nextAttemptAt) }),
  });
}
