import { join } from "node:path";
import { create } from "@bufbuild/protobuf";
import type { Log } from "@holdfast/common/log.ts";
import { RenewCertificateRequestSchema } from "@holdfast/proto/holdfast/agent/v1/session_pb.ts";
import { createKeyWithRequest } from "@holdfast/mtls/certificate-request.ts";
import { agentMethods, type ControllerChannel } from "@holdfast/mtls/controller-channel.ts";
import { enroll } from "@holdfast/mtls/enroll.ts";
import { createEnrollmentKey } from "@holdfast/mtls/enrollment-key.ts";
import { type EnrollmentFile, readEnrollment, tokenDigest } from "@holdfast/mtls/enrollment-file.ts";
import { createIdentityFile, identityOf, type MachineIdentity, renewalTime } from "@holdfast/mtls/machine-identity.ts";

/** Client certificate of the machine: enrollment, storage and renewal. */
export interface MachineCredentials {
  /** The enrollment file, whether its token has been used or not; undefined without one. */
  enrollment(): Promise<EnrollmentFile | undefined>;
  /**
   * Returns a valid certificate: a new one for an enrollment whose token is unused, otherwise the stored one. If the
   * enrollment fails, a stored valid certificate is used. Rejects if there is none.
   */
  identify(address: string): Promise<MachineIdentity>;
  /** Renews the certificate, which is stored and then returned by `identify`. */
  renew(channel: ControllerChannel): Promise<void>;
  /**
   * Time at which two thirds of the certificate's lifetime have passed, in milliseconds since 1970; undefined without
   * one.
   */
  readonly renewalAt: number | undefined;
  readonly endsAt: number;
  /** Generation of the authorities that issued it; 0 without one. */
  readonly authorityGeneration: number;
}

const renewTimeoutMs = 5_000;

export function createMachineCredentials(stateDir: string, now: () => number, log: Log): MachineCredentials {
  const file = createIdentityFile(stateDir);
  const enrollingKey = createEnrollmentKey(stateDir);
  const enrollment = () => readEnrollment(join(stateDir, "enrollment.json"));
  let identity: MachineIdentity | undefined;

  return {
    enrollment,
    async identify(address) {
      identity ??= await file.load();
      const offered = await enrollment();
      const valid = identity !== undefined && identity.notAfter > now() ? identity : undefined;
      const isNew = offered !== undefined && identity?.tokenDigest !== tokenDigest(offered.token);
      if (offered === undefined || (valid !== undefined && !isNew)) {
        if (valid === undefined) throw new Error("there is neither a certificate nor an enrollment");
        return valid;
      }
      try {
        const key = await enrollingKey.loadOrCreate(tokenDigest(offered.token));
        identity = await enroll(offered, key, address, now);
        await file.save(identity);
        await enrollingKey.delete();
        log.info("machine enrolled", { notAfter: identity.notAfter });
        return identity;
      } catch (error) {
        if (valid === undefined) throw error;
        log.warn("enrollment failed, previous certificate is used", { reason: (error as Error).message });
        return valid;
      }
    },
    async renew(channel) {
      if (identity === undefined) throw new Error("there is no certificate to renew");
      const { privateKey, request } = createKeyWithRequest();
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
