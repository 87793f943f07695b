import type { Log } from "@holdfast/common/log.ts";
import type { InstallationAuthority } from "../pki/create-authority.ts";
import { agentDefinition, enrollmentDefinition, peerDefinition } from "./agent-definitions.ts";
import type { MtlsListener } from "./mtls-listener.ts";
import { createCertificateRpcs } from "./certificate-rpcs.ts";
import type { MachineCertificates } from "./machine-certificates.ts";
import type { Pace } from "./pace.ts";
import { createPayloadRpcs } from "./payload-rpcs.ts";
import type { PayloadStore } from "./payload-store.ts";
import { createPeerRpcs } from "./peer-calls.ts";
import { logRefusal, requirePeer } from "./rpc-handlers.ts";
import { RpcFailure } from "./rpc-status.ts";
import type { Session, SessionCall } from "./session.ts";
import type { Sessions } from "./sessions.ts";

export interface FleetRpcsDeps {
  readonly installationId: string;
  readonly authority: InstallationAuthority;
  readonly certificates: MachineCertificates;
  readonly payloads: PayloadStore;
  readonly payloadBytes: number;
  readonly pace: Pace;
  readonly sessions: Pick<Sessions, "accept">;
  /** The stream of a machine, if it is here and may be used. */
  readonly sessionOf: (machineId: string) => Session | undefined;
  readonly log: Log;
}

/** Serves machines that enrol, agents and the other controllers on this listener. */
export function addFleetRpcs(listener: Pick<MtlsListener, "addService">, deps: FleetRpcsDeps): void {
  const { installationId, authority, certificates, payloads, payloadBytes, pace, sessions, sessionOf, log } = deps;
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
  listener.addService(peerDefinition, { runTask: createPeerRpcs(installationId, log, sessionOf).runTask });
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
