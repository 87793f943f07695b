import { type ClientHttp2Session, connect } from "node:http2";

/** One request of a crowd. */
export interface H2Request {
  readonly verb: string;
  readonly path: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string | Buffer;
}

export interface H2Answer {
  /** Status of HTTP; 0 when the stream was reset before it had one. */
  readonly status: number;
  /** grpc-status; undefined over REST. */
  readonly grpcStatus: number | undefined;
  readonly bytes: number;
}

/** Many concurrent requests over few connections. */
export interface H2Caller {
  send(request: H2Request): Promise<H2Answer>;
  /** Sends the request, or the part of it in `body`, and resets the stream; resolves after the reset. */
  cancel(request: H2Request & { readonly length?: number }): Promise<void>;
  close(): void;
}

/** Opens several connections, because streams above one connection's limit would wait in this process. */
export function openH2(url: string, ca: string, connections = 8): H2Caller {
  const sessions = Array.from({ length: connections }, () => {
    const session = connect(url, { ca });
    session.on("error", () => undefined);
    return session;
  });
  let next = 0;
  const session = (): ClientHttp2Session => {
    next += 1;
    const each = sessions[next % sessions.length];
    if (each === undefined) throw new Error("there is no connection");
    return each;
  };
  const headersOf = ({ verb, path, headers }: H2Request) => ({ ":method": verb, ":path": path, ...headers });

  return {
    send: (request) =>
      new Promise((resolve) => {
        const stream = session().request(headersOf(request));
        let status = 0;
        let grpcStatus: number | undefined;
        let bytes = 0;
        const note = (fields: Readonly<Record<string, unknown>>) => {
          if (fields[":status"] !== undefined) status = Number(fields[":status"]);
          if (fields["grpc-status"] !== undefined) grpcStatus = Number(fields["grpc-status"]);
        };
        stream.on("response", note).on("trailers", note);
        stream.on("data", (chunk: Buffer) => (bytes += chunk.length));
        stream.on("error", () => undefined);
        stream.once("close", () => resolve({ status, grpcStatus, bytes }));
        stream.end(request.body);
      }),
    cancel: (request) =>
      new Promise((resolve) => {
        const length = request.length === undefined ? {} : { "content-length": String(request.length) };
        const stream = session().request({ ...headersOf(request), ...length });
        stream.on("error", () => undefined);
        stream.once("close", () => resolve());
        stream.resume();
        // The request is sent before the reset.
        const leave = () => stream.close(8 /* CANCEL */);
        if (request.body === undefined) stream.end(leave);
        else stream.write(request.body, leave);
      }),
    close() {
      for (const each of sessions) each.destroy();
    },
  };
}
