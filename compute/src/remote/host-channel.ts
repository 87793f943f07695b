import { Client, type ClientReadableStream, credentials, Metadata, type ServiceError } from "@grpc/grpc-js";
import { type GrpcMethod, unaryCall } from "@holdfast/mtls/grpc-service.ts";
import { canonicalSerial, parseIdentity } from "@holdfast/common/identity.ts";
import { createIdleClose, type IdleClose } from "@holdfast/mtls/idle-close.ts";
import type { RenewedIdentity } from "@holdfast/mtls/renewed-identity.ts";
import { HostUnreachable } from "../compute-failure.ts";
import { computeErrorOf } from "./compute-status.ts";
import { messageBytes } from "./host-methods.ts";

export interface HostChannelDeps {
  readonly hostId: string;
  /** Address of the host, host:port. */
  readonly address: string;
  readonly installationId: string;
  /** Identity of this controller. */
  readonly identity: Pick<RenewedIdentity, "current" | "subscribe">;
  /** PEM of every trusted authority. */
  readonly trustBundle: () => string;
  /** True if this certificate of the host is still valid; all of the installation's are if absent. */
  readonly isValid?: (serial: string) => boolean;
  /** Calls `onChange` when `isValid` may have changed; a connection with an invalid certificate is closed. */
  readonly onCertificates?: (onChange: () => void) => { close(): void };
  /** Wait for a host that is starting, in milliseconds; 5 s if absent. */
  readonly connectTimeoutMs?: number;
}

/** Calls to one host, on one connection that is dialed again after each interruption. */
export interface HostChannel {
  /** Throws the error of the host's provider, HostUnreachable without a response, or the signal's reason. */
  unary<Q, A>(method: GrpcMethod<Q, A>, request: Q, timeoutMs: number, signal: AbortSignal): Promise<A>;
  /** Messages until the end; throws like `unary`, also after some messages. */
  stream<Q, A>(method: GrpcMethod<Q, A>, request: Q, signal: AbortSignal, timeoutMs?: number): AsyncIterable<A>;
  /** Calls `renewed` when a new certificate required a new connection; calls in flight continue on the old one. */
  onRenewal(renewed: () => void): void;
  close(): void;
}

export function createHostChannel(deps: HostChannelDeps): HostChannel {
  const {
    hostId,
    address,
    installationId,
    identity,
    trustBundle,
    isValid = () => true,
    onCertificates,
    connectTimeoutMs = 5_000,
  } = deps;
  const closing = new AbortController();
  let renewed = () => {};
  /** Serial of the host's last presented certificate. */
  let peerSerial: string | undefined;
  let current: { readonly client: Client; readonly calls: IdleClose } | undefined;
  const renewals = [
    identity.subscribe(dialAgain),
    onCertificates?.(() => {
      if (peerSerial !== undefined && !isValid(peerSerial)) dialAgain();
    }),
  ];

  function dialAgain(): void {
    peerSerial = undefined;
    current?.calls.close();
    current = undefined;
    renewed();
  }

  function connection(): { readonly client: Client; readonly calls: IdleClose } {
    if (current !== undefined) return current;
    const { privateKey, certificate } = identity.current;
    const tls = credentials.createSsl(Buffer.from(trustBundle()), Buffer.from(privateKey), Buffer.from(certificate), {
      // Hosts change their addresses: the identity in the certificate counts.
      checkServerIdentity(_host, peer) {
        const found = parseIdentity(peer.subjectaltname, installationId);
        if (found?.kind !== "host" || found.id !== hostId) return new Error(`the peer is not host ${hostId}`);
        const serial = canonicalSerial(peer.serialNumber);
        if (!isValid(serial)) return new Error("the host's certificate is superseded");
        peerSerial = serial;
        return undefined;
      },
    });
    const client = new Client(address, tls, {
      "grpc.enable_channelz": 0,
      "grpc.max_receive_message_length": messageBytes,
      "grpc.max_send_message_length": messageBytes,
      // A placeholder, since an IP address is not a valid server name; the identity is checked above.
      "grpc.ssl_target_name_override": "host.holdfast.internal",
      // These two detect a host that does not respond any more.
      "grpc.keepalive_time_ms": 4_000,
      "grpc.keepalive_timeout_ms": 8_000,
      "grpc.enable_retries": 0,
      "grpc.initial_reconnect_backoff_ms": 100,
      "grpc.max_reconnect_backoff_ms": 1_000,
      // A connection that no other channel shares, so that a renewed certificate is used.
      "grpc.use_local_subchannel_pool": 1,
    });
    current = { client, calls: createIdleClose(() => client.close()) };
    return current;
  }

  /** Resolves with a live connection; retries a refused one until the time limit. */
  async function connected(signal: AbortSignal) {
    signal.throwIfAborted();
    const opened = connection();
    const end = opened.calls.begin();
    const aborted = new AbortController();
    try {
      await new Promise<void>((resolve, reject) => {
        const fail = () => reject(reasonOf(signal, hostId, closing.signal));
        for (const each of [signal, closing.signal]) each.addEventListener("abort", fail, { signal: aborted.signal });
        opened.client.waitForReady(Date.now() + connectTimeoutMs, (error) => {
          if (error === undefined) resolve();
          else reject(new HostUnreachable(hostId, `no connection to ${address}.`));
        });
      });
      return { client: opened.client, end };
    } catch (error) {
      end();
      throw error;
    } finally {
      aborted.abort();
    }
  }

  return {
    async unary(method, request, timeoutMs, signal) {
      const { client, end } = await connected(signal);
      try {
        return await unaryCall(client, method, request, timeoutMs, signal);
      } catch (error) {
        throw signal.aborted ? signal.reason : computeErrorOf(error as ServiceError, hostId);
      } finally {
        end();
      }
    },
    async *stream(method, request, signal, timeoutMs) {
      const { client, end } = await connected(signal);
      const { path, requestSerialize, responseDeserialize } = method;
      const options = timeoutMs === undefined ? {} : { deadline: Date.now() + timeoutMs };
      const call: ClientReadableStream<unknown> = client.makeServerStreamRequest(
        path,
        requestSerialize,
        responseDeserialize,
        request,
        new Metadata(),
        options,
      );
      const cancel = () => call.cancel();
      signal.addEventListener("abort", cancel, { once: true });
      try {
        for await (const message of call) yield message as never;
      } catch (error) {
        throw signal.aborted ? signal.reason : computeErrorOf(error as ServiceError, hostId);
      } finally {
        signal.removeEventListener("abort", cancel);
        call.cancel();
        end();
      }
    },
    onRenewal(callback) {
      renewed = callback;
    },
    close() {
      closing.abort();
      for (const watch of renewals) watch?.close();
      current?.client.close();
      current = undefined;
    },
  };
}

function reasonOf(signal: AbortSignal, hostId: string, closing: AbortSignal): unknown {
  if (signal.aborted) return signal.reason;
  return closing.aborted ? new HostUnreachable(hostId, "it was removed from the installation.") : undefined;
}
