/** The gRPC code of an error, by its name in google.rpc.Code. */
export type GrpcCode =
  | "INVALID_ARGUMENT"
  | "UNAUTHENTICATED"
  | "PERMISSION_DENIED"
  | "NOT_FOUND"
  | "ALREADY_EXISTS"
  | "FAILED_PRECONDITION"
  | "ABORTED"
  | "RESOURCE_EXHAUSTED"
  | "UNIMPLEMENTED"
  | "UNAVAILABLE"
  | "DEADLINE_EXCEEDED"
  | "INTERNAL";

/** One error of the catalog. */
export interface ErrorEntry {
  readonly grpc: GrpcCode;
  readonly status: number;
  readonly title: string;
  /** Advice for the caller; the text of the error's documentation page. */
  readonly help: string;
}
