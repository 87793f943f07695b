import type { Clock } from "@holdfast/common/clock.ts";
import type { JoinFile } from "@holdfast/common/join-file.ts";
import type { Log } from "@holdfast/common/log.ts";
import { connectHost, type RemoteHost } from "@holdfast/compute/remote/connect-host.ts";
import { createIdentityCertificates, hasSerial } from "../certificate/identity-certificates.ts";
import type { InstallationAuthority } from "#kernel/pki/create-authority.ts";
import { type Enrollment, mintEnrollment } from "#kernel/pki/enrollment.ts";
import { createRenewedIdentity } from "@holdfast/mtls/renewed-identity.ts";
import { addressesOf } from "#kernel/runtime/controller-addresses.ts";
import type { ControllerRegistry } from "#kernel/runtime/controller-registry.ts";
import type { Sealer } from "#kernel/secrets/sealer.ts";
import type { Collection } from "#kernel/store/collection.ts";
import type { Store } from "#kernel/store/store.ts";
import { createAddressBlocks } from "./address-blocks.ts";
import { createHostEnrollment } from "./host-enrollment.ts";
import { hostKind, type HostObject, isRemoved } from "./host.ts";

export interface HostTrustDeps {
  readonly installationId: string;
  readonly store: Store;
  readonly hosts: Collection<HostObject>;
  readonly controllerRegistry: Pick<ControllerRegistry, "id" | "controllers">;
  readonly authority: InstallationAuthority;
  readonly sealer: Sealer;
  readonly clock: Clock;
  readonly random: () => number;
  readonly log: Log;
  /** True after a restore: hosts may have newer certificates than the store. */
  readonly storeMayBeBehind: () => boolean;
}

/** Enrollment of hosts, and mutual authentication of controllers and hosts. */
export interface HostTrust {
  /** HostEnrollmentService, for the controllers' listener. */
  readonly service: ReturnType<typeof createHostEnrollment>;
  /**
   * Mints a token for the host. The caller stores `enrollment` in the host's status before it returns the file. The
   * token is valid once, within ten minutes. It replaces an earlier token immediately, and the host's certificate when
   * it is spent.
   */
  invite(hostId: string, address: string): Promise<{ readonly enrollment: Enrollment; readonly file: JoinFile }>;
  /** Dials the host, and redials until it is closed. */
  connect(host: HostObject): RemoteHost;
  /** Claims the address block of the controllers' own host, which never enrolls. A conflict is logged. */
  claimOwn(hostId: string, addressBlock: string): Promise<void>;
  close(): void;
}

export async function createHostTrust(deps: HostTrustDeps): Promise<HostTrust> {
  const { installationId, store, hosts, controllerRegistry, authority, sealer, clock, random, log, storeMayBeBehind } =
    deps;
  const certificates = createIdentityCertificates({
    installationId,
    kind: "host",
    objectKind: hostKind,
    objects: hosts,
    isRemoved,
    store,
    authority,
    sealer,
    clock,
    log,
    storeMayBeBehind,
  });
  const blocks = createAddressBlocks(store);
  const exists = async (hostId: string) => {
    const stored = await hosts.getCurrent(hostId);
    return stored !== undefined && !isRemoved(stored.object);
  };
  const identity = await createRenewedIdentity({
    authority,
    identity: { kind: "controller", id: controllerRegistry.id },
    names: [],
    addresses: [],
    clock,
    log,
  });
  const controllers = () => addressesOf(controllerRegistry);

  return {
    service: createHostEnrollment({ installationId, authority, certificates, blocks, exists, log }),
    async invite(hostId, address) {
      const { token, enrollment } = mintEnrollment(sealer, clock);
      const takenBlocks = [...(await blocks.all())].filter(([, holder]) => holder !== hostId).map(([block]) => block);
      const file: JoinFile = {
        installation_id: installationId,
        host_id: hostId,
        address,
        controllers: controllers(),
        ca_fingerprint: authority.fingerprint,
        token,
        expires_at: new Date(enrollment.expiresAt).toISOString(),
        taken_blocks: takenBlocks,
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
        isValid(serial) {
          const cached = hosts.get(hostId)?.object;
          return cached !== undefined && !isRemoved(cached) && (hasSerial(cached.status, serial) || storeMayBeBehind());
        },
        onCertificates: (onChange) =>
          hosts.subscribe((changed) => {
            if (changed === hostId) onChange();
          }),
        hello: () => ({ controllers: controllers(), authorityGeneration: authority.generation }),
        random,
        log,
      });
    },
    async claimOwn(hostId, addressBlock) {
      const holder = await blocks.claim(addressBlock, hostId, exists);
      if (holder !== undefined)
        log.error("address block of the own host belongs to another host", {
          host: hostId,
          holder,
          block: addressBlock,
        });
    },
    close: () => identity.close(),
  };
}
