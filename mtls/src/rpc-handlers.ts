import type { handleUnaryCall, ServerUnaryCall } from "@grpc/grpc-js";
import { status as Code } from "@grpc/grpc-js";
import type { Identity } from "@holdfast/common/identity.ts";
import type { Log } from "@holdfast/common/log.ts";
import { type AnyCall, type Peer, peerOf } from "./peer.ts";
import { RpcFailure } from "./rpc-status.ts";

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
