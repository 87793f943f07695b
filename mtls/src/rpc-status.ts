import { HoldfastError } from "@holdfast/common/errors.ts";
import { status as Code, type StatusObject } from "@grpc/grpc-js";

/** A gRPC status; the message is sent to the peer. */
export class RpcFailure extends Error {
  override readonly name = "RpcFailure";
  readonly code: Code;

  constructor(code: Code, message: string) {
    super(message);
    this.code = code;
  }

  /** The status for anything thrown; an unknown error becomes INTERNAL without its cause. */
  static from(error: unknown): RpcFailure {
    if (error instanceof RpcFailure) return error;
    if (error instanceof HoldfastError) return new RpcFailure(Code[error.entry.grpc], error.detail);
    return new RpcFailure(Code.INTERNAL, "the controller failed");
  }

  get status(): Pick<StatusObject, "code" | "details"> {
    return { code: this.code, details: this.message };
  }
}
