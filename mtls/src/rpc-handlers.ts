import { type handleUnaryCall, type ServerUnaryCall, status as Code, type StatusObject } from "@grpc/grpc-js";
import type { Identity } from "@holdfast/common/identity.ts";
import type { Log } from "@holdfast/common/log.ts";
import { HoldfastError } from "@holdfast/common/errors.ts";
import { type AnyCall, type Peer, peerOf } from "./peer.ts";

/** The peer, if its identity is of this kind; throws UNAUTHENTICATED or PERMISSION_DENIED. */
export function requirePeer(call: AnyCall, installationId: string, kind: Identity["kind"]): Peer {
  const peer = peerOf(call, installationId);
  if (peer === undefined)
    throw new RpcFailure(Code.UNAUTHENTICATED, "a client certificate of this installation is needed");
  if (peer.identity.kind !== kind) throw new RpcFailure(Code.PERMISSION_DENIED, `only a ${kind} may call this`);
  return peer;
}

/** Creates a unary handler from an async function. A thrown error becomes the call's status and is logged here. */
export function unary<Request, Response>(
  name: string,
  log: Log,
  handler: (request: Request, call: ServerUnaryCall<Request, Response>) => Promise<Response>,
): handleUnaryCall<Request, Response> {
  return (call, callback) => {
    const respond = async () => {
      let response: Response;
      try {
        response = await handler(call.request, call);
      } catch (error) {
        logRefusal(log, name, call, error);
        callback(RpcFailure.from(error).status);
        return;
      }
      callback(null, response);
    };
    respond().catch((error: unknown) => log.error("rpc not answered", { rpc: name, error }));
  };
}

/** Logs a failed call: an internal error as an error, a refusal as a warning. */
export function logRefusal(log: Log, name: string, call: AnyCall, error: unknown): void {
  const failure = RpcFailure.from(error);
  const fields = { rpc: name, address: call.getPeer(), reason: failure.message };
  if (failure.code === Code.INTERNAL) log.error("rpc failed", { ...fields, error });
  else log.warn("rpc refused", fields);
}

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
