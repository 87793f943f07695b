import { status as Code } from "@grpc/grpc-js";
import { inBackground } from "@holdfast/common/background.ts";
import type { MintObjectUrlsRequest, ObjectUrls } from "@holdfast/proto/holdfast/agent/v1/backup_pb.ts";
import type { Log } from "@holdfast/common/log.ts";
import type { TokenBuckets } from "@holdfast/common/concurrency/token-buckets.ts";
import type { MtlsListener } from "@holdfast/mtls/mtls-listener.ts";
import { logRefusal, requirePeer, RpcFailure, unary } from "@holdfast/mtls/rpc-handlers.ts";
import type { InstallationAuthority } from "#kernel/pki/create-authority.ts";
import { createCertificateRpcs } from "./certificate/certificate-rpcs.ts";
import type { MachineCertificates } from "./certificate/machine-certificates.ts";
import type { ObjectUrlGrants } from "./object-grants.ts";
import type { PayloadRateLimit } from "./payload/payload-rate-limit.ts";
import { createPayloadRpcs, type PayloadRpcsDeps } from "./payload/payload-rpcs.ts";
import type { PayloadStore } from "./payload/payloads.ts";
import { agentDefinition, enrollmentDefinition, controllerDefinition } from "./session/agent-definitions.ts";
import { createControllerRpcs, type ControllerRpcsDeps } from "./session/controller-calls.ts";
import type { SessionCall } from "./session/session.ts";
import type { Sessions } from "./session/sessions.ts";
import type { QuickTasks } from "./task/quick-tasks.ts";

export interface FleetRpcsDeps {
  readonly installationId: string;
  readonly authority: InstallationAuthority;
  readonly certificates: MachineCertificates;
  readonly payloads: PayloadStore;
  readonly payloadBytes: number;
  readonly payloadQuota: PayloadRpcsDeps["payloadQuota"];
  readonly payloadRateLimit: PayloadRateLimit;
  readonly payloadRates: TokenBuckets;
  readonly certificateRates: TokenBuckets;
  /** Rate of failed enrollments, by source. */
  readonly enrollmentRates: TokenBuckets;
  readonly sessions: Pick<Sessions, "accept">;
  readonly quickTasks: QuickTasks;
  readonly sessionOf: ControllerRpcsDeps["sessionOf"];
  /** True while this controller may act on agents' streams. */
  readonly hasLease: () => boolean;
  readonly primaryLeases: ControllerRpcsDeps["primaryLeases"];
  readonly reconcilers: ControllerRpcsDeps["reconcilers"];
  readonly urlGrants: ObjectUrlGrants | undefined;
  readonly log: Log;
}

const mintTimeoutMs = 10_000;

/** Adds the services for enrolling machines, agents and other controllers to the listener. */
export function addFleetRpcs(listener: Pick<MtlsListener, "addService">, deps: FleetRpcsDeps): void {
  const {
    installationId,
    authority,
    certificates,
    payloads,
    payloadBytes,
    payloadQuota,
    payloadRateLimit,
    sessions,
    quickTasks,
    sessionOf,
    log,
  } = deps;
  const { enroll, renewCertificate, issueServerCertificate } = createCertificateRpcs({
    installationId,
    authority,
    certificates,
    rates: deps.certificateRates,
    failures: deps.enrollmentRates,
    log,
  });
  const { readPayload, writePayload } = createPayloadRpcs({
    installationId,
    certificates,
    payloads,
    payloadBytes,
    payloadQuota,
    rateLimit: payloadRateLimit,
    rates: deps.payloadRates,
    log,
  });
  listener.addService(enrollmentDefinition, { enroll });
  listener.addService(
    controllerDefinition,
    createControllerRpcs({
      installationId,
      log,
      quickTasks,
      sessionOf,
      hasLease: deps.hasLease,
      primaryLeases: deps.primaryLeases,
      reconcilers: deps.reconcilers,
    }),
  );
  listener.addService(agentDefinition, {
    renewCertificate,
    issueServerCertificate,
    readPayload,
    mintObjectUrls: unary<MintObjectUrlsRequest, ObjectUrls>("MintObjectUrls", log, async (request, call) => {
      const peer = requirePeer(call, installationId, "machine");
      await certificates.check(peer);
      if (deps.urlGrants === undefined)
        throw new RpcFailure(Code.UNAVAILABLE, "the installation has no object store for machines");
      return deps.urlGrants.mint(peer.identity.id, request, AbortSignal.timeout(mintTimeoutMs));
    }),
    writePayload: (...call: Parameters<typeof writePayload>) =>
      inBackground(log, "WritePayload", writePayload(...call)),
    session(call: SessionCall) {
      // An unhandled error event of one agent's stream would end the process.
      call.on("error", () => undefined);
      try {
        sessions.accept(call, requirePeer(call, installationId, "machine"));
      } catch (error) {
        logRefusal(log, "Session", call, error);
        call.emit("error", RpcFailure.from(error).status);
      }
    },
  });
}
