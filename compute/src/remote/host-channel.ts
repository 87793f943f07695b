import { Client, type ClientReadableStream, credentials, Metadata, type ServiceError } from "@grpc/grpc-js";
import type { GrpcMethod } from "@holdfast/mtls/grpc-service.ts";
import { normalSerial, parseIdentity } from "@holdfast/common/identity.ts";
import { createLastCall, type LastCall } from "@holdfast/mtls/last-call.ts";
import { unaryCall } from "@holdfast/mtls/unary-call.ts";
import type { RenewedIdentity } from "@holdfast/mtls/renewed-identity.ts";
import { HostUnreachable } from "../compute-failure.ts";
import { computeErrorOf } from "./compute-status.ts";
import { messageBytes } from "./host-methods.ts";

export interface HostChannelDeps {
  readonly hostId: string;
  /** host:port. */
  readonly address: string;
  readonly installationId: string;
  /** Of this controller. */
  readonly identity: Pick<RenewedIdentity, "current" | "subscribe">;
  /** PEM of every authority to trust. */
  readonly trustBundle: () => string;
  /** Is this certificate of the host still good? Any of the installation's is when absent. */
  readonly isGood?: (serial: string) => boolean;
  /** Calls back when `isGood` may answer something else; a connection to one that is not good any more is given up. */
  readonly onCertificates?: (onChange: () => void) => { close(): void };
  /** A host that is starting again is waited for so long; 5 s when absent. */
  readonly connectWithinMs?: number;
}

/** Calls to one host, on one connection that is made again whenever it broke. */
export interface HostChannel {
  /** Throws what the host's provider threw; HostUnreachable when no answer came; the signal's reason when it aborted. */
  unary<Q, A>(method: GrpcMethod<Q, A>, request: Q, timeoutMs: number, signal: AbortSignal): Promise<A>;
  /** All messages until the end; throws like `unary`, also in the middle. */
  stream<Q, A>(method: GrpcMethod<Q, A>, request: Q, signal: AbortSignal, timeoutMs?: number): AsyncIterable<A>;
  /** Calls back when a new certificate made a new connection necessary: calls under way go on with the old one. */
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
    isGood = () => true,
    onCertificates,
    connectWithinMs = 5_000,
  } = deps;
  const closing = new AbortController();
  let renewed = () => {};
  /** Serial of the certificate that the host showed last. */
  let shown: string | undefined;
  let current: { readonly client: Client; readonly calls: LastCall } | undefined;
  const renewals = [
    identity.subscribe(dialAgain),
    onCertificates?.(() => {
      if (shown !== undefined && !isGood(shown)) dialAgain();
    }),
  ];

  function dialAgain(): void {
    shown = undefined;
    current?.calls.close();
    current = undefined;
    renewed();
  }

  function connection(): { readonly client: Client; readonly calls: LastCall } {
    if (current !== undefined) return current;
    const { privateKey, certificate } = identity.current;
    const tls = credentials.createSsl(Buffer.from(trustBundle()), Buffer.from(privateKey), Buffer.from(certificate), {
      // Hosts move between addresses: what counts is who it is, not where.
      checkServerIdentity(_host, peer) {
        const found = parseIdentity(peer.subjectaltname, installationId);
        if (found?.kind !== "host" || found.id !== hostId) return new Error(`the peer is not host ${hostId}`);
        const serial = normalSerial(peer.serialNumber);
        if (!isGood(serial)) return new Error("the host's certificate is superseded");
        shown = serial;
        return undefined;
      },
    });
    const client = new Client(address, tls, {
      "grpc.enable_channelz": 0,
      "grpc.max_receive_message_length": messageBytes,
      "grpc.max_send_message_length": messageBytes,
      // Only so that no IP address is sent as a server name; who it is, is checked above.
      "grpc.ssl_target_name_override": "host.holdfast.internal",
      // A host that died without a word is noticed after both.
      "grpc.keepalive_time_ms": 4_000,
      "grpc.keepalive_timeout_ms": 8_000,
      "grpc.enable_retries": 0,
      "grpc.initial_reconnect_backoff_ms": 100,
      "grpc.max_reconnect_backoff_ms": 1_000,
      // Each has its own connection: a renewed certificate must show.
      "grpc.use_local_subchannel_pool": 1,
    });
    current = { client, calls: createLastCall(() => client.close()) };
    return current;
  }

  /** Resolves with a live connection; a refused one is tried again until the time is over. */
  async function connected(signal: AbortSignal) {
    signal.throwIfAborted();
    const made = connection();
    const end = made.calls.begin();
    const aborted = new AbortController();
    try {
      await new Promise<void>((resolve, reject) => {
        const fail = () => reject(reasonOf(signal, hostId, closing.signal));
        for (const each of [signal, closing.signal]) each.addEventListener("abort", fail, { signal: aborted.signal });
        made.client.waitForReady(Date.now() + connectWithinMs, (error) => {
          if (error === undefined) resolve();
          else reject(new HostUnreachable(hostId, `no connection to ${address}.`));
        });
      });
      return { client: made.client, end };
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
  return closing.aborted ? new HostUnreachable(hostId, "it is not dialled any more.") : undefined;
}
