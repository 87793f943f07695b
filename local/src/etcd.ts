import type { PlatformProgram } from "@holdfast/image/platform-program.ts";
import type { ChildSpec } from "./child.ts";
import type { Layout } from "./layout.ts";
import type { Ports } from "./ports.ts";
import type { ProgramUser } from "./program-user.ts";
import type { TransportPki } from "./transport-pki.ts";

/** etcd of one member: TLS both ways, history of keys compacted hourly, its file bounded. */
export function etcdChild(
  etcd: PlatformProgram,
  user: ProgramUser,
  { layout, ports, pki }: { layout: Layout; ports: Ports; pki: TransportPki },
): ChildSpec {
  const client = `https://127.0.0.1:${ports.etcd_client}`;
  const peer = `https://127.0.0.1:${ports.etcd_peer}`;
  const argv = [
    etcd.executable("etcd"),
    "--name=local",
    `--data-dir=${layout.etcd}/data`,
    `--listen-client-urls=${client}`,
    `--advertise-client-urls=${client}`,
    `--listen-peer-urls=${peer}`,
    `--initial-advertise-peer-urls=${peer}`,
    `--initial-cluster=local=${peer}`,
    // A cluster of one elects itself, but only after its election timeout.
    "--heartbeat-interval=50",
    "--election-timeout=250",
    `--cert-file=${pki.etcd.certificate}`,
    `--key-file=${pki.etcd.key}`,
    `--trusted-ca-file=${pki.etcd.ca}`,
    "--client-cert-auth",
    `--peer-cert-file=${pki.etcd.certificate}`,
    `--peer-key-file=${pki.etcd.key}`,
    `--peer-trusted-ca-file=${pki.etcd.ca}`,
    "--peer-client-cert-auth",
    "--auto-compaction-mode=periodic",
    "--auto-compaction-retention=1h",
    `--quota-backend-bytes=${2 ** 31}`,
    "--log-level=info",
    "--log-outputs=stderr",
  ];
  return {
    name: "etcd",
    launch: etcd.launch({ argv, ...user, binds: [layout.etcd, `${layout.pki}/etcd`] }),
    env: {},
    ready: /ready to serve client requests/,
    listens: ["etcd_client", "etcd_peer"],
    stopSignal: "SIGTERM",
    graceMs: 10_000,
  };
}
