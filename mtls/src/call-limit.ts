import {
  ResponderBuilder,
  ServerInterceptingCall,
  type ServerInterceptingCallInterface,
  ServerListenerBuilder,
  status as Code,
} from "@grpc/grpc-js";
import { createKeyedCounter } from "@holdfast/common/concurrency/keyed-counter.ts";
import type { AnyCall } from "./peer.ts";

/**
 * Refuses a unary call before its message is read if the connection already has its maximum of calls in flight, since
 * each call can use the memory of a full message before it is authorized. Streams are not limited here: their handlers
 * check the caller first. Every connection may have at least `minimum` calls in flight.
 */
export function createCallLimit(minimum: number, maxConcurrentCalls: (call: AnyCall) => number) {
  /** Calls in flight by host:port. */
  const inFlight = createKeyedCounter();

  return (
    method: { readonly requestStream: boolean },
    call: ServerInterceptingCallInterface,
  ): ServerInterceptingCall => {
    if (method.requestStream) {
      // A wrapper would process every message of a stream again.
      return call as ServerInterceptingCall;
    }
    const address = call.getPeer();
    const isBelowMinimum = inFlight.of(address) < minimum;
    const taken = inFlight.take([{ key: address, max: isBelowMinimum ? minimum : maxConcurrentCalls(call) }]);
    if (taken.exceeded !== undefined) return refused(call);
    const { release } = taken;
    const listener = new ServerListenerBuilder().withOnCancel(release).build();
    const responder = new ResponderBuilder()
      .withStart((next) => next(listener))
      .withSendStatus((status, next) => {
        release();
        next(status);
      })
      .build();
    return new ServerInterceptingCall(call, responder);
  };
}

function refused(call: ServerInterceptingCallInterface): ServerInterceptingCall {
  const sendRefusal = () =>
    call.sendStatus({ code: Code.RESOURCE_EXHAUSTED, details: "Too many concurrent calls. Retry later." });
  // The call does not reach its handler.
  const listener = new ServerListenerBuilder().withOnReceiveMetadata(sendRefusal).build();
  return new ServerInterceptingCall(call, new ResponderBuilder().withStart((next) => next(listener)).build());
}
