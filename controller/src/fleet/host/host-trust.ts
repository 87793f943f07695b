import type { Clock } from "@holdfast/common/clock.ts";
import type { JoinFile } from "@holdfast/common/join-file.ts";
import type { Log } from "@holdfast/common/log.ts";
import { connectHost, type RemoteHost } from "@holdfast/compute/remote/connect-host.ts";
import { createIdentityCertificates, hasSerial } from "../certificate/identity-certificates.ts";
import type { InstallationAuthority } from "#kernel/pki/create-authority.ts";
import type { Enrollment } from "#kernel/pki/enrolled-status.ts";
import { mintEnrollment } from "#kernel/pki/enrollment-token.ts";
import { createRenewedIdentity } from "@holdfast/mtls/renewed-identity.ts";
import { addressesOf } from "#kernel/runtime/controller-addresses.ts";
import type { Membership } from "#kernel/runtime/membership.ts";
import type { Sealer } from "#kernel/secrets/sealer.ts";
import type { Collection } from "#kernel/store/collection.ts";
import type { Store } from "#kernel/store/store.ts";
import { createAddressBlocks } from "./address-blocks.ts";
import { createHostEnrollment } from "./host-enrollment.ts";
import { type HostObject, isOut } from "./host.ts";

export interface HostTrustDeps {
  readonly installationId: string;
  readonly store: Store;
  readonly hosts: Collection<HostObject>;
  readonly membership: Pick<Membership, "id" | "members">;
  readonly authority: InstallationAuthority;
  readonly sealer: Sealer;
  readonly clock: Clock;
  readonly random: () => number;
  readonly log: Log;
  /** True after a restore: hosts may have newer certificates than the store knows. */
  readonly storeMayBeBehind: () => boolean;
}

/** What makes a machine a host, and then lets controllers and that host know each other. */
export interface HostTrust {
  /** HostEnrollmentService, for the controllers' listener. */
  readonly service: ReturnType<typeof createHostEnrollment>;
  /**
   * A fresh token for the host: `enrollment` is to be kept in its status before anybody gets the file, whose token is good once
   * and for ten minutes. An older token ends with that, an older certificate when the new token is spent.
   */
  invite(hostId: string, address: string): Promise<{ readonly enrollment: Enrollment; readonly file: JoinFile }>;
  /** Dials the host until it is closed. */
  connect(host: HostObject): RemoteHost;
  /** The addresses of the controllers' own host, which never joins; another host that has them already is logged. */
  claimOwn(hostId: string, addressBlock: string): Promise<void>;
  close(): void;
}

export async function createHostTrust(deps: HostTrustDeps): Promise<HostTrust> {
  const { installationId, store, hosts, membership, authority, sealer, clock, random, log, storeMayBeBehind } = deps;
  const certificates = createIdentityCertificates({
    installationId,
    kind: "host",
    objects: hosts,
    isOut,
    store,
    authority,
    sealer,
    clock,
    log,
    storeMayBeBehind,
  });
  const blocks = createAddressBlocks(store);
  const exists = async (hostId: string) => {
    const known = await hosts.fresh(hostId);
    return known !== undefined && !isOut(known.object);
  };
  const identity = await createRenewedIdentity({
    authority,
    identity: { kind: "controller", id: membership.id },
    names: [],
    addresses: [],
    clock,
    log,
  });
  const controllers = () => addressesOf(membership);

  return {
    service: createHostEnrollment({ installationId, authority, certificates, blocks, exists, log }),
    async invite(hostId, address) {
      const { token, enrollment } = mintEnrollment(sealer, clock);
      const taken = [...(await blocks.all())].filter(([, holder]) => holder !== hostId).map(([block]) => block);
      const file: JoinFile = {
        installation_id: installationId,
        host_id: hostId,
        address,
        controllers: controllers(),
        ca_fingerprint: authority.fingerprint,
        token,
        expires_at: new Date(enrollment.expiresAt).toISOString(),
        taken_blocks: taken,
      };
      return { enrollment, file };
    },
    connect({ metadata: { id: hostId }, spec: { address }, status }) {
      return connectHost({
        hostId,
        address,
        provider: status.facts?.provider ?? "",
        installationId,
        identity,
        trustBundle: () => authority.trustBundle,
        isGood(serial) {
          const known = hosts.get(hostId)?.object;
          return known !== undefined && !isOut(known) && (hasSerial(known.status, serial) || storeMayBeBehind());
        },
        onCertificates: (onChange) =>
          hosts.subscribe((changed) => {
            if (changed === hostId) onChange();
          }),
        greeting: () => ({ controllers: controllers(), authorityGeneration: authority.generation }),
        random,
        log,
      });
    },
    async claimOwn(hostId, addressBlock) {
      const holder = await blocks.claim(addressBlock, hostId, exists);
      if (holder !== undefined)
        log.error("another host has the addresses of this one", { host: hostId, holder, block: addressBlock });
    },
    close: () => identity.close(),
  };
}
