import { join } from "node:path";
import { create } from "@bufbuild/protobuf";
import type { Log } from "@holdfast/common/log.ts";
import { RenewCertificateRequestSchema } from "@holdfast/proto/holdfast/agent/v1/session_pb.ts";
import { makeKeyWithRequest } from "@holdfast/mtls/certificate-request.ts";
import { agentMethods, type ControllerChannel } from "@holdfast/mtls/controller-channel.ts";
import { enroll } from "@holdfast/mtls/enroll.ts";
import { createEnrollingKey } from "@holdfast/mtls/enrolling-key.ts";
import { type EnrollmentFile, readEnrollment, tokenDigest } from "@holdfast/mtls/enrollment-file.ts";
import { createIdentityFile, identityOf, type MachineIdentity, renewalTime } from "@holdfast/mtls/machine-identity.ts";

/** The machine's client certificate, from enrollment through every renewal. */
export interface MachineCredentials {
  /** The enrollment that is there, whether it was used or not. */
  enrollment(): Promise<EnrollmentFile | undefined>;
  /**
   * A good certificate: a fresh enrollment's when there is one that was not used, else the one that is kept. When a fresh
   * one is refused, the kept one serves on. Rejects when there is none.
   */
  identify(address: string): Promise<MachineIdentity>;
  /** Gets the next one; it is kept and given by identify from then on. */
  renew(channel: ControllerChannel): Promise<void>;
  /** When two thirds of the current one are over; undefined without one. */
  readonly renewalAt: number | undefined;
  readonly endsAt: number;
  /** Of the authorities by which it was issued; 0 without one. */
  readonly authorityGeneration: number;
}

const renewTimeoutMs = 5_000;

export function createMachineCredentials(stateDir: string, now: () => number, log: Log): MachineCredentials {
  const file = createIdentityFile(stateDir);
  const enrollingKey = createEnrollingKey(stateDir);
  const enrollment = () => readEnrollment(join(stateDir, "enrollment.json"));
  let identity: MachineIdentity | undefined;

  return {
    enrollment,
    async identify(address) {
      identity ??= await file.load();
      const offered = await enrollment();
      const valid = identity !== undefined && identity.notAfter > now() ? identity : undefined;
      const isFresh = offered !== undefined && identity?.tokenDigest !== tokenDigest(offered.token);
      if (offered === undefined || (valid !== undefined && !isFresh)) {
        if (valid === undefined) throw new Error("there is neither a certificate nor an enrollment");
        return valid;
      }
      try {
        const key = await enrollingKey.of(tokenDigest(offered.token));
        identity = await enroll(offered, key, address, now);
        await file.save(identity);
        await enrollingKey.forget();
        log.info("machine enrolled", { notAfter: identity.notAfter });
        return identity;
      } catch (error) {
        if (valid === undefined) throw error;
        log.warn("enrollment failed, the certificate of before is used", { reason: (error as Error).message });
        return valid;
      }
    },
    async renew(channel) {
      if (identity === undefined) throw new Error("there is no certificate to renew");
      const { privateKey, request } = makeKeyWithRequest();
      const message = create(RenewCertificateRequestSchema, { certificateRequest: request });
      const issuedAt = now();
      const response = await channel.unary(agentMethods.renewCertificate, message, renewTimeoutMs);
      identity = identityOf(response, issuedAt, { ...identity, privateKey });
      await file.save(identity);
      log.info("certificate renewed", { notAfter: identity.notAfter });
    },
    get renewalAt() {
      return identity === undefined ? undefined : renewalTime(identity);
    },
    get endsAt() {
      return identity?.notAfter ?? 0;
    },
    get authorityGeneration() {
      return identity?.authorityGeneration ?? 0;
    },
  };
}
