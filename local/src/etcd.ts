import type { PlatformProgram } from "@holdfast/image/platform-program.ts";
import type { ChildSpec } from "./child.ts";
import type { Layout } from "./layout.ts";
import type { Ports } from "./ports.ts";
import type { ProgramUser } from "./program-user.ts";
import type { TransportFiles, TransportPki } from "./transport-pki.ts";

/** One member of etcd. Addresses are `https://host:port`. */
export interface EtcdMemberPlan {
  readonly name: string;
  /** Data directory. */
  readonly data: string;
  readonly client: string;
  readonly peer: string;
  /** Names and peer addresses of all members, `name=address,...`. */
  readonly cluster: string;
  /** TLS files for clients and peers. */
  readonly files: TransportFiles;
  /**
   * Interval of the leader's heartbeats and the silence after which members elect another, in milliseconds. By default
   * both are short: a single member elects itself only after its election timeout, which delays its start.
   */
  readonly heartbeatMs?: number;
  readonly electionMs?: number;
}

/** Flags of a member: mutual TLS, hourly compaction, bounded size. */
export function etcdFlags(plan: EtcdMemberPlan): string[] {
  const { name, data, client, peer, cluster, files, heartbeatMs = 50, electionMs = 250 } = plan;
  return [
    `--name=${name}`,
    `--data-dir=${data}`,
    `--listen-client-urls=${client}`,
    `--advertise-client-urls=${client}`,
    `--listen-peer-urls=${peer}`,
    `--initial-advertise-peer-urls=${peer}`,
    `--initial-cluster=${cluster}`,
    `--heartbeat-interval=${heartbeatMs}`,
    `--election-timeout=${electionMs}`,
    `--cert-file=${files.certificate}`,
    `--key-file=${files.key}`,
    `--trusted-ca-file=${files.ca}`,
    "--client-cert-auth",
    `--peer-cert-file=${files.certificate}`,
    `--peer-key-file=${files.key}`,
    `--peer-trusted-ca-file=${files.ca}`,
    "--peer-client-cert-auth",
    "--auto-compaction-mode=periodic",
    "--auto-compaction-retention=1h",
    `--quota-backend-bytes=${2 ** 31}`,
    "--log-level=info",
    "--log-outputs=stderr",
  ];
}

/** Output of etcd once it serves clients. */
export const etcdServes = /ready to serve client requests/;

/** The single etcd member of an installation. */
export function etcdChild(
  etcd: PlatformProgram,
  user: ProgramUser,
  { layout, ports, pki }: { layout: Layout; ports: Ports; pki: TransportPki },
): ChildSpec {
  const peer = `https://127.0.0.1:${ports.etcd_peer}`;
  const flags = etcdFlags({
    name: "local",
    data: `${layout.etcd}/data`,
    client: `https://127.0.0.1:${ports.etcd_client}`,
    peer,
    cluster: `local=${peer}`,
    files: pki.etcd,
  });
  const argv = [etcd.executable("etcd"), ...flags];
  return {
    name: "etcd",
    launch: etcd.launch({ argv, ...user, binds: [layout.etcd, `${layout.pki}/etcd`] }),
    env: {},
    ready: etcdServes,
    listens: ["etcd_client", "etcd_peer"],
    stopSignal: "SIGTERM",
    graceMs: 10_000,
  };
}
