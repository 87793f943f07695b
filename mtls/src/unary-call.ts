import type { GrpcMethod } from "./grpc-service.ts";

/** The method of a grpc-js client that a unary call needs. */
export interface UnaryClient {
  makeUnaryRequest<Q, A>(
    path: string,
    serialize: (value: Q) => Buffer,
    deserialize: (bytes: Buffer) => A,
    request: Q,
    options: { readonly deadline: number },
    onResponse: (error: Error | null, response?: A) => void,
  ): { cancel(): void };
}

/**
 * Runs a unary call. Rejects with the ServiceError of grpc-js, also after timeoutMs; if the signal aborts, cancels the
 * call at the server and rejects with the signal's reason.
 */
export function unaryCall<Q, A>(
  client: UnaryClient,
  { path, requestSerialize, responseDeserialize }: GrpcMethod<Q, A>,
  request: Q,
  timeoutMs: number,
  signal?: AbortSignal,
): Promise<A> {
  return new Promise((resolve, reject) => {
    const cancel = () => call.cancel();
    const onResponse = (error: Error | null, response?: A) => {
      signal?.removeEventListener("abort", cancel);
      if (error === null) resolve(response as A);
      else reject(signal?.aborted === true ? signal.reason : error);
    };
    const options = { deadline: Date.now() + timeoutMs };
    const call = client.makeUnaryRequest(path, requestSerialize, responseDeserialize, request, options, onResponse);
    if (signal?.aborted === true) cancel();
    else signal?.addEventListener("abort", cancel, { once: true });
  });
}
