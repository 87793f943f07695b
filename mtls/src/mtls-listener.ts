import { createServer, isIP, type Socket } from "node:net";
import {
  ResponderBuilder,
  Server as GrpcServer,
  ServerCredentials,
  ServerInterceptingCall,
  type ServerInterceptingCallInterface,
  ServerListenerBuilder,
  type ServiceDefinition,
  status as Code,
  type UntypedServiceImplementation,
} from "@grpc/grpc-js";
import { createKeyedCounter } from "@holdfast/common/concurrency/keyed-counter.ts";
import { type Endpoint, endpointOf } from "@holdfast/common/endpoint.ts";
import { peerAddressOf, createHandshakeLimiter } from "@holdfast/common/handshake-limiter.ts";
import type { Log } from "@holdfast/common/log.ts";
import { listenAt } from "@holdfast/common/open-listeners.ts";
import type { KeyWithCertificate } from "./authority.ts";
import { createConnections } from "./connections.ts";
import type { AnyCall } from "./peer.ts";

/** Key and certificate in PEM, which can be replaced while the listener runs. */
export interface ListenerIdentity {
  readonly current: Pick<KeyWithCertificate, "privateKey" | "certificate">;
  subscribe(onChange: (renewed: Pick<KeyWithCertificate, "privateKey" | "certificate">) => void): { close(): void };
}

export interface MtlsListenerDeps {
  readonly host: string;
  /** Port; 0 selects a free one. */
  readonly port: number;
  /** Additional endpoints to listen on. */
  readonly alsoListen?: readonly Endpoint[];
  readonly identity: ListenerIdentity;
  /** PEM of the authorities of client certificates. */
  readonly trustBundle: () => string;
  readonly messageBytes: number;
  readonly log: Log;
  /** Maximum number of unary calls in flight on an authenticated connection; 1,000 by default. */
  readonly maxConcurrentCalls?: (call: AnyCall) => number;
  /**
   * Maximum number of connections; 15,000 by default, which leaves some of the process's 20,000 file descriptors for
   * etcd and history.
   */
  readonly connections?: number;
  /** Time in milliseconds without an authenticated call before a connection is closed; one minute by default. */
  readonly unauthenticatedMs?: number;
}

/**
 * An mTLS port: of a controller for agents, hosts, DNS servers and other controllers; of a host for controllers. Each
 * RPC checks its peer's identity. A connection passes `Connections` (limits by source), `HandshakeLimiter` (TLS) and
 * `createCallLimit` (unary calls) before a handler sees it.
 */
export interface MtlsListener {
  addService(definition: ServiceDefinition, implementation: UntypedServiceImplementation): void;
  /** Listens and returns the port; rejects if one of the addresses is not available. */
  listen(): Promise<number>;
  /** Closes the connection from this host:port immediately, with all its calls. */
  disconnect(address: string): void;
  close(): Promise<void>;
}

const handshakeTimeoutMs = 10_000;
/** Enough to use one CPU while peers respond; each handshake takes a few milliseconds of it. */
const maxConcurrentHandshakes = 64;
const handshakeStalledMs = 1_000;
/** A peer without a certificate only enrolls. */
const unauthenticatedCalls = 2;
/** A session, payloads and a few calls; controllers forward many short tasks concurrently. */
const streamsPerConnection = 1_000;
/** A certificate and its request have a few kilobytes. */
const unauthenticatedBytes = 64 << 10;
const defaultUnauthenticatedMs = 60_000;
const defaultConnections = 15_000;
/** A connection without calls is closed; agents dial again when they need one. */
const idleConnectionMs = 120_000;

export function createMtlsListener(deps: MtlsListenerDeps): MtlsListener {
  const { host, port, alsoListen = [], identity, trustBundle, messageBytes, log } = deps;
  const limited = createCallLimit(unauthenticatedCalls, (call) =>
    hasCertificate(call) ? (deps.maxConcurrentCalls?.(call) ?? streamsPerConnection) : unauthenticatedCalls,
  );
  const grpc = new GrpcServer({
    "grpc.max_receive_message_length": messageBytes,
    "grpc.max_send_message_length": messageBytes,
    "grpc.max_connection_idle_ms": idleConnectionMs,
    "grpc.max_concurrent_streams": streamsPerConnection,
    "grpc.enable_channelz": 0,
    interceptors: [
      (method, call) => {
        const address = call.getPeer();
        handshakes.finish(address);
        if (connections.isUnauthenticated(address) && hasCertificate(call)) connections.authenticated(address);
        return limited(method, call);
      },
    ],
  });
  const credentials = new RotatingCredentials(contextOf(identity.current, trustBundle()));
  const renewals = identity.subscribe((renewed) => credentials.replace(contextOf(renewed, trustBundle())));
  const injector = grpc.createConnectionInjector(credentials);
  const handshakes = createHandshakeLimiter({
    maxInFlight: maxConcurrentHandshakes,
    stallTimeoutMs: handshakeStalledMs,
    begin: (socket) => injector.injectConnection(socket),
  });

  // This listener owns the sockets, so that it can close a connection while the peer stalls: the status of a call is
  // sent after data that a stalled peer does not read.
  const connections = createConnections({
    max: deps.connections ?? defaultConnections,
    unauthenticatedMs: deps.unauthenticatedMs ?? defaultUnauthenticatedMs,
    unauthenticatedBytes,
  });
  const accept = (socket: Socket) => {
    const address = peerAddressOf(socket);
    if (!connections.add(socket)) return;
    socket.setNoDelay(true);
    socket.setKeepAlive(true, 30_000);
    // TLS reports errors on its own socket; this one only needs a listener.
    socket.on("error", (error) => log.debug("mtls connection failed", { address, error: error.message }));
    handshakes.add(socket);
  };
  const listeners = [{ host, port }, ...alsoListen].map((at) => ({ at, server: createServer(accept) }));

  return {
    addService: (definition, implementation) => grpc.addService(definition, implementation),
    async listen() {
      const ports = await Promise.all(listeners.map(({ at, server }) => listenAt(server, at)));
      for (const { server } of listeners) server.on("error", (error) => log.error("mtls listener failed", { error }));
      return ports[0] ?? port;
    },
    disconnect: (address) => connections.disconnect(address),
    async close() {
      renewals.close();
      const closed = listeners.map(
        ({ server }) =>
          new Promise<void>((resolve) => {
            server.close(() => resolve());
          }),
      );
      injector.destroy();
      connections.close();
      grpc.forceShutdown();
      await Promise.all(closed);
    },
  };
}

/** True if the peer presented a certificate of a trusted authority. */
function hasCertificate(call: Pick<AnyCall, "getAuthContext">): boolean {
  return call.getAuthContext().sslPeerCertificate !== undefined;
}

function contextOf(identity: ListenerIdentity["current"], trustBundle: string) {
  return { cert: identity.certificate, key: identity.privateKey, ca: trustBundle, minVersion: "TLSv1.3" as const };
}

/**
 * TLS credentials for grpc-js whose certificate can be replaced at run time. A client certificate is requested but
 * optional, since enrollment has none. It is a class because grpc-js requires a subclass.
 */
class RotatingCredentials extends ServerCredentials {
  constructor(context: ReturnType<typeof contextOf>) {
    super({ requestCert: true, rejectUnauthorized: false, handshakeTimeout: handshakeTimeoutMs }, context);
  }

  replace(context: ReturnType<typeof contextOf>): void {
    this.updateSecureContextOptions(context);
  }

  override _equals(other: ServerCredentials): boolean {
    return this === other;
  }
}

const unspecified = new Set(["0.0.0.0", "::", ""]);

/** Names and IP addresses for the certificate of a listener: the listen address, the advertised one and localhost. */
export function listenerNames(
  host: string,
  advertise: string | undefined,
): { readonly names: string[]; readonly addresses: string[] } {
  const dialed = advertise === undefined ? undefined : endpointOf(advertise).host;
  const all = ["localhost", "127.0.0.1", host, ...(dialed === undefined ? [] : [dialed])];
  const isAddress = (name: string) => isIP(name) !== 0;
  const usable = [...new Set(all)].filter((name) => !unspecified.has(name));
  return { names: usable.filter((name) => !isAddress(name)), addresses: usable.filter(isAddress) };
}

/**
 * Refuses a unary call before its message is read if the connection already has its maximum of calls in flight, since
 * each call can use the memory of a full message before it is authorized. Streams are not limited here: their handlers
 * check the caller first. Every connection may have at least `minimum` calls in flight.
 */
function createCallLimit(minimum: number, maxConcurrentCalls: (call: AnyCall) => number) {
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
