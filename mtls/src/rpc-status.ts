import { HoldfastError } from "@holdfast/common/errors.ts";
import { status as Code, type StatusObject } from "@grpc/grpc-js";

/** An RPC that ends with this gRPC code; the text goes to the peer. */
export class RpcFailure extends Error {
  override readonly name = "RpcFailure";
  readonly code: Code;

  constructor(code: Code, message: string) {
    super(message);
    this.code = code;
  }

  /** What a peer is told about anything thrown; the cause of an unknown error stays here. */
  static from(error: unknown): RpcFailure {
    if (error instanceof RpcFailure) return error;
    if (error instanceof HoldfastError) return new RpcFailure(Code[error.entry.grpc], error.detail);
    return new RpcFailure(Code.INTERNAL, "the controller could not do it");
  }

  get status(): Pick<StatusObject, "code" | "details"> {
    return { code: this.code, details: this.message };
  }
}
