import { status as Code, type ServiceError } from "@grpc/grpc-js";
import { RpcFailure } from "@holdfast/mtls/rpc-handlers.ts";
import { ComputeFailure, ComputePending, HostUnreachable, isDiskFull } from "../compute-failure.ts";

/** gRPC status for an error of a provider. gRPC itself never produces the first two codes. */
export function rpcFailureOf(error: unknown): RpcFailure {
  if (error instanceof RpcFailure) return error;
  if (error instanceof ComputeFailure) return new RpcFailure(Code.FAILED_PRECONDITION, error.message);
  if (error instanceof ComputePending) return new RpcFailure(Code.ABORTED, error.message);
  if (error instanceof HostUnreachable) return new RpcFailure(Code.UNAVAILABLE, error.message);
  if (isDiskFull(error)) return new RpcFailure(Code.FAILED_PRECONDITION, "The host's disk is full.");
  return new RpcFailure(Code.INTERNAL, "The host failed to carry out the request; its log has the error.");
}

/** Restores the provider's error at the controller. An error that the host may not have sent is HostUnreachable. */
export function computeErrorOf({ code, details }: Pick<ServiceError, "code" | "details">, hostId: string): Error {
  switch (code) {
    case Code.FAILED_PRECONDITION:
      return new ComputeFailure(details);
    case Code.ABORTED:
      return new ComputePending(details);
    case Code.INTERNAL:
    case Code.INVALID_ARGUMENT:
    case Code.PERMISSION_DENIED:
    case Code.UNAUTHENTICATED:
    case Code.UNIMPLEMENTED:
      return new Error(`host ${hostId} refused: ${details}`);
    default:
      return new HostUnreachable(hostId, details);
  }
}
