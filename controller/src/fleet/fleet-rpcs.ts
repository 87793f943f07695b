import type { Log } from "@holdfast/common/log.ts";
import type { MtlsListener } from "../listener/mtls-listener.ts";
import { logRefusal, requirePeer } from "../listener/rpc-handlers.ts";
import { RpcFailure } from "../listener/rpc-status.ts";
import type { InstallationAuthority } from "../pki/create-authority.ts";
import { createCertificateRpcs } from "./certificate/certificate-rpcs.ts";
import type { MachineCertificates } from "./certificate/machine-certificates.ts";
import type { Pace } from "./payload/pace.ts";
import { createPayloadRpcs } from "./payload/payload-rpcs.ts";
import type { PayloadStore } from "./payload/payload-store.ts";
import { agentDefinition, enrollmentDefinition, peerDefinition } from "./session/agent-definitions.ts";
import { createPeerRpcs } from "./session/peer-calls.ts";
import type { SessionCall } from "./session/session.ts";
import type { Sessions } from "./session/sessions.ts";
import type { QuickTasks } from "./task/quick-tasks.ts";

export interface FleetRpcsDeps {
  readonly installationId: string;
  readonly authority: InstallationAuthority;
  readonly certificates: MachineCertificates;
  readonly payloads: PayloadStore;
  readonly payloadBytes: number;
  readonly pace: Pace;
  readonly sessions: Pick<Sessions, "accept">;
  readonly quickTasks: QuickTasks;
  /** May this controller act on streams now? */
  readonly hasLease: () => boolean;
  readonly log: Log;
}

/** Serves machines that enrol, agents and the other controllers on this listener. */
export function addFleetRpcs(listener: Pick<MtlsListener, "addService">, deps: FleetRpcsDeps): void {
  const { installationId, authority, certificates, payloads, payloadBytes, pace, sessions, quickTasks, log } = deps;
  const { enroll, renewCertificate, issueServerCertificate } = createCertificateRpcs({
    installationId,
    authority,
    certificates,
    log,
  });
  const { readPayload, writePayload } = createPayloadRpcs({
    installationId,
    certificates,
    payloads,
    payloadBytes,
    pace,
    log,
  });
  listener.addService(enrollmentDefinition, { enroll });
  listener.addService(peerDefinition, createPeerRpcs(installationId, log, quickTasks, deps.hasLease));
  listener.addService(agentDefinition, {
    renewCertificate,
    issueServerCertificate,
    readPayload,
    writePayload: (...call: Parameters<typeof writePayload>) => void writePayload(...call),
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
