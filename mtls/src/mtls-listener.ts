import { createServer, type Socket } from "node:net";
import {
  Server as GrpcServer,
  ServerCredentials,
  type ServiceDefinition,
  type UntypedServiceImplementation,
} from "@grpc/grpc-js";
import type { Endpoint } from "@holdfast/common/endpoint.ts";
import { addressOf, createHandshakes } from "@holdfast/common/handshakes.ts";
import type { Log } from "@holdfast/common/log.ts";
import { listenAt } from "@holdfast/common/open-listeners.ts";
import type { KeyWithCertificate } from "./authority.ts";
import { createCallLimit } from "./call-limit.ts";
import { createConnections } from "./connections.ts";
import type { AnyCall } from "./peer.ts";

/** Key and certificate in PEM, which are replaced while it listens. */
export interface ListenerIdentity {
  readonly current: Pick<KeyWithCertificate, "privateKey" | "certificate">;
  subscribe(onChange: (renewed: Pick<KeyWithCertificate, "privateKey" | "certificate">) => void): { close(): void };
}

export interface MtlsListenerDeps {
  readonly host: string;
  /** 0 takes a free one. */
  readonly port: number;
  /** Where it listens besides. */
  readonly alsoListen?: readonly Endpoint[];
  readonly identity: ListenerIdentity;
  /** PEM of the authorities that clients may come from. */
  readonly trustBundle: () => string;
  readonly messageBytes: number;
  readonly log: Log;
  /** Unary calls that may be under way at a time on the connection of a peer with a good certificate; 1,000 when absent. */
  readonly callsAtOnce?: (call: AnyCall) => number;
  /** Connections at a time; 15,000 when absent, which leaves some of a process's 20,000 files for etcd and history. */
  readonly connections?: number;
  /** How long a connection may stay without a call by a good certificate; a minute when absent. */
  readonly strangerMs?: number;
}

/** One port with mTLS: of a controller for agents, hosts, DNS servers and other controllers; of a host for controllers. Each RPC checks who it serves. */
export interface MtlsListener {
  addService(definition: ServiceDefinition, implementation: UntypedServiceImplementation): void;
  /** Answers the port; rejects when one of its addresses cannot be had. */
  listen(): Promise<number>;
  /** Ends the connection from this host:port at once, with every call on it. */
  disconnect(address: string): void;
  close(): Promise<void>;
}

const handshakeTimeoutMs = 10_000;
/** Enough to keep this thread busy while peers answer; each takes some milliseconds of it. */
const handshakesAtOnce = 64;
const handshakeWaitMs = 1_000;
/** Who has no certificate asks for one. */
const strangerCalls = 2;
/** A session, payloads and a few calls; controllers pass on many quick tasks at once. */
const streamsPerConnection = 1_000;
/** A certificate and the request for one are some kilobytes. */
const strangerBytes = 64 << 10;
const usualStrangerMs = 60_000;
const usualConnections = 15_000;
/** A connection without any call is closed; agents dial again when they need one. */
const idleConnectionMs = 120_000;

export function createMtlsListener(deps: MtlsListenerDeps): MtlsListener {
  const { host, port, alsoListen = [], identity, trustBundle, messageBytes, log } = deps;
  const limited = createCallLimit(strangerCalls, (call) =>
    isKnown(call) ? (deps.callsAtOnce?.(call) ?? streamsPerConnection) : strangerCalls,
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
        handshakes.over(address);
        if (connections.isStranger(address) && isKnown(call)) connections.known(address);
        return limited(method, call);
      },
    ],
  });
  const credentials = new RotatingCredentials(contextOf(identity.current, trustBundle()));
  const renewals = identity.subscribe((renewed) => credentials.replace(contextOf(renewed, trustBundle())));
  const injector = grpc.createConnectionInjector(credentials);
  const handshakes = createHandshakes({
    atOnce: handshakesAtOnce,
    waitMs: handshakeWaitMs,
    begin: (socket) => injector.injectConnection(socket),
  });

  // The sockets are ours, so that one connection can be ended whatever its peer does: a call's status waits behind
  // data that a stalled peer never reads.
  const connections = createConnections({
    most: deps.connections ?? usualConnections,
    strangerMs: deps.strangerMs ?? usualStrangerMs,
    strangerBytes,
  });
  const enter = (socket: Socket) => {
    const address = addressOf(socket);
    if (!connections.enter(socket)) return;
    socket.setNoDelay(true);
    socket.setKeepAlive(true, 30_000);
    // TLS reports on its own socket; this one only must not go unheard.
    socket.on("error", (error) => log.debug("agent connection broke", { address, error: error.message }));
    handshakes.enter(socket);
  };
  const listeners = [{ host, port }, ...alsoListen].map((at) => ({ at, server: createServer(enter) }));

  return {
    addService: (definition, implementation) => grpc.addService(definition, implementation),
    async listen() {
      const ports = await Promise.all(listeners.map(({ at, server }) => listenAt(server, at)));
      for (const { server } of listeners) server.on("error", (error) => log.error("agent listener broke", { error }));
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

/** Did the peer show a certificate of one of the authorities? */
function isKnown(call: Pick<AnyCall, "getAuthContext">): boolean {
  return call.getAuthContext().sslPeerCertificate !== undefined;
}

function contextOf(own: ListenerIdentity["current"], trustBundle: string) {
  return { cert: own.certificate, key: own.privateKey, ca: trustBundle, minVersion: "TLSv1.3" as const };
}

/**
 * TLS for grpc-js with a certificate that is replaced while it runs, and with a client certificate that is asked for
 * but not demanded (enrollment has none yet). A class because grpc-js takes credentials only as one.
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
