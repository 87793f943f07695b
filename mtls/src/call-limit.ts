import {
  ResponderBuilder,
  ServerInterceptingCall,
  type ServerInterceptingCallInterface,
  ServerListenerBuilder,
  status as Code,
} from "@grpc/grpc-js";
import type { AnyCall } from "./peer.ts";

/**
 * Refuses a unary call before its message is read when as many as the caller may make are under way on its connection: each
 * can fill the memory of a whole message before anybody judges it. Streams come through as they are; who serves one judges
 * its caller at its beginning. Nobody has less than `fewest`.
 */
export function createCallLimit(fewest: number, callsAtOnce: (call: AnyCall) => number) {
  /** By host:port. */
  const underWay = new Map<string, number>();

  return (
    method: { readonly requestStream: boolean },
    call: ServerInterceptingCallInterface & Partial<AnyCall>,
  ): ServerInterceptingCall => {
    // The very call: what the types want instead would handle each message of each stream once more.
    if (method.requestStream) return call as unknown as ServerInterceptingCall;
    const address = call.getPeer();
    const count = underWay.get(address) ?? 0;
    if (count >= fewest && count >= callsAtOnce(call as AnyCall)) return refused(call);
    underWay.set(address, count + 1);
    let isOver = false;
    const over = () => {
      if (isOver) return;
      isOver = true;
      const left = (underWay.get(address) ?? 1) - 1;
      if (left === 0) underWay.delete(address);
      else underWay.set(address, left);
    };
    const listener = new ServerListenerBuilder().withOnCancel(over).build();
    const responder = new ResponderBuilder()
      .withStart((next) => next(listener))
      .withSendStatus((status, next) => {
        over();
        next(status);
      })
      .build();
    return new ServerInterceptingCall(call, responder);
  };
}

function refused(call: ServerInterceptingCallInterface): ServerInterceptingCall {
  const answer = () => call.sendStatus({ code: Code.RESOURCE_EXHAUSTED, details: "too many calls at once" });
  // Nothing goes on to whoever would serve it.
  const listener = new ServerListenerBuilder().withOnReceiveMetadata(answer).build();
  return new ServerInterceptingCall(call, new ResponderBuilder().withStart((next) => next(listener)).build());
}
