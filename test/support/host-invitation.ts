import { systemClock } from "@holdfast/common/clock.ts";
import type { JoinFile } from "@holdfast/common/join-file.ts";
import { silentLog } from "@holdfast/common/log.ts";
import { createHostTrust } from "@holdfast/controller/host/host-trust.ts";
import { type HostObject, newHost } from "@holdfast/controller/host/host.ts";
import { createAuthority } from "@holdfast/controller/pki/create-authority.ts";
import { readKeyring } from "@holdfast/controller/secrets/keyring.ts";
import { createSealer } from "@holdfast/controller/secrets/sealer.ts";
import { createCollection } from "@holdfast/controller/store/collection.ts";
import { readEtcdCredentials } from "@holdfast/controller/store/etcd-credentials.ts";
import { createEtcdStore } from "@holdfast/controller/store/etcd-store.ts";
import { keyOf } from "@holdfast/controller/store/resource.ts";
import type { Platform } from "./platform.ts";
import { settingsOf } from "./second-controller.ts";

/** A host in the platform's store, with the file that lets a machine become it. */
export async function inviteHost(platform: Platform, hostId: string, zone: string, address: string): Promise<JoinFile> {
  const settings = settingsOf(platform.processes().controllers[0]);
  const setting = (name: string) => settings[`HOLDFAST_${name}`] ?? "";
  const credentials = await readEtcdCredentials({
    etcdCa: setting("ETCD_CA"),
    etcdCert: setting("ETCD_CERT"),
    etcdKey: setting("ETCD_KEY"),
  });
  const log = silentLog;
  const store = createEtcdStore({ hosts: [setting("ETCD")], ...(credentials && { credentials }), log });
  const sealer = createSealer(await readKeyring(setting("MASTER_KEY_FILE")));
  const installationId = setting("INSTALLATION_ID");
  const authority = await createAuthority({ store, sealer, installationId, clock: systemClock, log });
  const hosts = createCollection<HostObject>(store, "host");
  const member = { id: "controller-1", address: setting("AGENT_ADVERTISE"), draining: false, startedAt: 0 };
  const trust = await createHostTrust({
    installationId,
    store,
    hosts,
    membership: { id: "controller-1", members: () => [member] },
    authority,
    sealer,
    clock: systemClock,
    random: Math.random,
    log,
    storeMayBeBehind: () => false,
  });
  try {
    await hosts.ready;
    const { enrollment, file } = await trust.invite(hostId, address);
    const host = newHost(hostId, { zone, address, memoryOvercommit: null, diskOvercommit: null }, systemClock.now());
    const value = JSON.stringify({ ...host, status: { ...host.status, enrollment } });
    await store.commit({ conditions: [], puts: [{ key: keyOf("host", hostId), value }], deletes: [] });
    return file;
  } finally {
    for (const part of [trust, hosts, authority]) part.close();
    await store.close();
  }
}
