import { status as Code } from "@grpc/grpc-js";
import { inBackground } from "@holdfast/common/background.ts";
import type { MintObjectUrlsRequest, ObjectUrls } from "@holdfast/proto/holdfast/agent/v1/backup_pb.ts";
import type { Log } from "@holdfast/common/log.ts";
import type { TokenBuckets } from "@holdfast/common/token-bucket.ts";
import type { MtlsListener } from "@holdfast/mtls/mtls-listener.ts";
import { logRefusal, requirePeer, unary } from "@holdfast/mtls/rpc-handlers.ts";
import { RpcFailure } from "@holdfast/mtls/rpc-status.ts";
import type { InstallationAuthority } from "#kernel/pki/create-authority.ts";
import { createCertificateRpcs } from "./certificate/certificate-rpcs.ts";
import type { MachineCertificates } from "./certificate/machine-certificates.ts";
import type { ObjectUrlGrants } from "./object-urls.ts";
import type { Pace } from "./payload/pace.ts";
import { createPayloadRpcs, type PayloadRpcsDeps } from "./payload/payload-rpcs.ts";
import type { PayloadStore } from "./payload/payload-store.ts";
import { agentDefinition, enrollmentDefinition, peerDefinition } from "./session/agent-definitions.ts";
import { createPeerRpcs, type PeerRpcsDeps } from "./session/peer-calls.ts";
import type { SessionCall } from "./session/session.ts";
import type { Sessions } from "./session/sessions.ts";
import type { QuickTasks } from "./task/quick-tasks.ts";

export interface FleetRpcsDeps {
  readonly installationId: string;
  readonly authority: InstallationAuthority;
  readonly certificates: MachineCertificates;
  readonly payloads: PayloadStore;
  readonly payloadBytes: number;
  readonly heldPayloads: PayloadRpcsDeps["heldPayloads"];
  readonly pace: Pace;
  readonly payloadRates: TokenBuckets;
  readonly certificateRates: TokenBuckets;
  /** Enrollments that came to nothing, by source. */
  readonly enrollmentRates: TokenBuckets;
  readonly sessions: Pick<Sessions, "accept">;
  readonly quickTasks: QuickTasks;
  readonly sessionOf: PeerRpcsDeps["sessionOf"];
  /** May this controller act on streams now? */
  readonly hasLease: () => boolean;
  readonly rights: PeerRpcsDeps["rights"];
  readonly urlGrants: ObjectUrlGrants | undefined;
  readonly log: Log;
}

const mintWithinMs = 10_000;

/** Serves machines that enroll, agents and the other controllers on this listener. */
export function addFleetRpcs(listener: Pick<MtlsListener, "addService">, deps: FleetRpcsDeps): void {
  const {
    installationId,
    authority,
    certificates,
    payloads,
    payloadBytes,
    heldPayloads,
    pace,
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
    heldPayloads,
    pace,
    rates: deps.payloadRates,
    log,
  });
  listener.addService(enrollmentDefinition, { enroll });
  listener.addService(
    peerDefinition,
    createPeerRpcs({ installationId, log, quickTasks, sessionOf, hasLease: deps.hasLease, rights: deps.rights }),
  );
  listener.addService(agentDefinition, {
    renewCertificate,
    issueServerCertificate,
    readPayload,
    mintObjectUrls: unary<MintObjectUrlsRequest, ObjectUrls>("MintObjectUrls", log, async (request, call) => {
      const peer = requirePeer(call, installationId, "machine");
      await certificates.check(peer);
      if (deps.urlGrants === undefined) throw new RpcFailure(Code.UNAVAILABLE, "there is no object store for machines");
      return deps.urlGrants.mint(peer.identity.id, request, AbortSignal.timeout(mintWithinMs));
    }),
    writePayload: (...call: Parameters<typeof writePayload>) =>
      inBackground(log, "WritePayload", writePayload(...call)),
    session(call: SessionCall) {
      // Without this a broken stream of one agent would end the process.
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
