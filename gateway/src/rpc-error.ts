import { Code, ConnectError } from "@connectrpc/connect";
import { create } from "@bufbuild/protobuf";
import {
  BadRequestSchema,
  ErrorInfoSchema,
  HelpSchema,
  RetryInfoSchema,
} from "@holdfast/proto/google/rpc/error_details_pb.ts";
import type { HoldfastError } from "@holdfast/common/errors.ts";
import type { GrpcCode } from "@holdfast/common/errors/error-entry.ts";
import { errorPage } from "./problem.ts";

// biome-ignore format: a table, aligned so that it reads as one
const codes: Readonly<Record<GrpcCode, Code>> = {
  INVALID_ARGUMENT:    Code.InvalidArgument,
  UNAUTHENTICATED:     Code.Unauthenticated,
  PERMISSION_DENIED:   Code.PermissionDenied,
  NOT_FOUND:           Code.NotFound,
  ALREADY_EXISTS:      Code.AlreadyExists,
  FAILED_PRECONDITION: Code.FailedPrecondition,
  ABORTED:             Code.Aborted,
  RESOURCE_EXHAUSTED:  Code.ResourceExhausted,
  UNIMPLEMENTED:       Code.Unimplemented,
  UNAVAILABLE:         Code.Unavailable,
  DEADLINE_EXCEEDED:   Code.DeadlineExceeded,
  INTERNAL:            Code.Internal,
};

/** Converts an error for gRPC and Connect, with the code, page, help, members and faults of its problem document. */
export function toConnectError(error: HoldfastError, requestId: string, baseUrl: string): ConnectError {
  const metadata: Record<string, string> = {
    request_id: requestId,
    page: errorPage(baseUrl, error.code),
    status: String(error.entry.status),
    ...(error.errorsOmitted > 0 && { errors_omitted: String(error.errorsOmitted) }),
  };
  for (const [name, value] of Object.entries(error.members)) {
    metadata[name] = typeof value === "string" ? value : JSON.stringify(value);
  }
  const details = [
    { desc: ErrorInfoSchema, value: create(ErrorInfoSchema, { reason: error.key, domain: "holdfast", metadata }) },
    ...(error.errors.length === 0 ? [] : [{ desc: BadRequestSchema, value: badRequest(error) }]),
    ...(error.entry.help === "" ? [] : [{ desc: HelpSchema, value: helpOf(error, baseUrl) }]),
    ...(error.retryAfterS === undefined ? [] : [{ desc: RetryInfoSchema, value: retryInfo(error.retryAfterS) }]),
  ];
  return new ConnectError(error.detail, codes[error.entry.grpc], { "request-id": requestId }, details);
}

function badRequest(error: HoldfastError) {
  const fieldViolations = error.errors.map(({ field, detail, code }) => ({
    field,
    description: detail,
    reason: code.toUpperCase(),
  }));
  return create(BadRequestSchema, { fieldViolations });
}

function helpOf({ entry, code }: HoldfastError, baseUrl: string) {
  return create(HelpSchema, { links: [{ description: entry.help, url: errorPage(baseUrl, code) }] });
}

function retryInfo(seconds: number) {
  return create(RetryInfoSchema, { retryDelay: { seconds: BigInt(Math.ceil(seconds)) } });
}
